"""`make demo`: the whole pipeline on the shipped messages and subscriptions, with a change on the way."""

import logging
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.dom import minidom

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from tamis.catalog import Catalog
from tamis.connectors.dead_letters import DeadLetters
from tamis.connectors.outbox import Outbox
from tamis.errors import QueryError, marked
from tamis.live import batch_line
from tamis.settings import Settings, load_settings
from tamis.spark.job import Job
from tamis.status import StatusBoard
from tamis.subscription import NewSubscription

SHIPPED = files("tamis.demo")

Condition = Callable[[], bool]


class Demo:
    """A job in a folder of its own, and what is done to it."""

    def __init__(self, folder: Path, console: Console) -> None:
        (folder / "tamis.toml").write_text("interval = 0.2\n[spark]\nmaster = 'local[2]'\n")
        self.settings: Settings = load_settings(folder / "tamis.toml", environment={})
        self.folder = folder
        self.console = console
        self.board = StatusBoard(self.settings.state, [source.name for source in self.settings.sources])
        self.outbox = Outbox(folder / "outbox")
        self.shown: set[str] = set()
        self.published = 0

    def run(self) -> None:
        """Start, do the steps as their conditions come true, stop."""
        self.board.on_report(
            lambda report: self.console.print(Text(batch_line(report), "dim"), highlight=False)
        )
        with Catalog(self.settings.catalog) as catalog:
            self.subscribe(catalog)
            steps = self.steps(catalog)
            waiting: list[Condition] = []
            starting = self.console.status("starting Spark …")

            def is_over() -> bool:
                starting.stop()
                if waiting and not waiting[0]():
                    return False
                waiting[:] = [condition] if (condition := next(steps, None)) else []
                return not waiting

            starting.start()
            Job(self.settings, self.board).run(until=is_over)
        self.sum_up()

    def subscribe(self, catalog: Catalog) -> None:
        """Register the shipped subscriptions; one is refused."""
        given = tomllib.loads((SHIPPED / "subscriptions.toml").read_text("utf-8"))
        table = Table("subscriber", "query", title="Subscriptions", title_justify="left", show_lines=True)
        for one in given["subscription"]:
            new = NewSubscription(one["subscriber"], one["query"], namespaces=given["namespaces"])
            try:
                catalog.add(new)
                table.add_row(new.subscriber, Text(new.query))
            except QueryError as error:
                spot = marked(new.query, error.line, error.column, width=50)
                table.add_row(new.subscriber, Text(f"{spot}\nrefused: {error.reason}", style="red"))
        self.console.print(table)

    def steps(self, catalog: Catalog) -> Iterator[Condition]:
        """What happens, each time until something is so."""
        names = sorted(path.name for path in (SHIPPED / "messages").iterdir())
        self.console.rule("Messages arrive in the inbox")
        for name in names[:3]:
            self.publish(name)
        yield self.all_read
        self.show("Deliveries in the outbox")
        self.show_forms(names[0], ["news ticker", "weather map", "archive"])
        self.console.rule("One that is cut off")
        self.publish(names[3])
        yield self.all_read
        self.show_letters()
        self.console.rule("While the job runs, one subscribes and one leaves")
        added = catalog.add(NewSubscription("second reader", "/story[company]/headline"))
        analyst = next(iter(catalog.list(subscriber="analyst")))
        catalog.remove(analyst.id)
        self.console.print(
            Text.assemble(("+ ", "green"), f"{added.subscriber}: {added.query}"), highlight=False
        )
        self.console.print(
            Text.assemble(("- ", "red"), f"{analyst.subscriber}: {analyst.query}"), highlight=False
        )
        self.publish(names[4])
        yield self.all_read
        self.show("Deliveries since then")

    def publish(self, name: str) -> None:
        """A message enters the inbox, by rename."""
        inbox = self.folder / "inbox"
        inbox.mkdir(exist_ok=True)
        draft = inbox / f".{name}"
        draft.write_bytes((SHIPPED / "messages" / name).read_bytes())
        draft.rename(inbox / name)
        self.published += 1

    def all_read(self) -> bool:
        """Whether all that was published has gone through."""
        return sum(source.totals.read for source in self.board.now().sources) >= self.published

    def show(self, title: str) -> None:
        """Which message reached whom, of what is new in the outbox."""
        reached: dict[str, list[str]] = {}
        for row in self.deliveries():
            if row["id"] not in self.shown:
                self.shown.add(row["id"])
                reached.setdefault(row["message"], []).append(row["subscriber"])
        table = Table("message", "reached", title=title, title_justify="left", show_lines=True)
        for message, subscribers in sorted(reached.items()):
            table.add_row(message, "\n".join(sorted(subscribers)))
        self.console.print(table)

    def deliveries(self) -> Iterator[dict[str, Any]]:
        """All that is in the outbox."""
        for publication in self.outbox.published():
            for batch in self.outbox.read(publication):
                yield from batch.to_pylist()

    def show_forms(self, message: str, subscribers: Sequence[str]) -> None:
        """One message, as several subscribers get it."""
        rows = [row for row in self.deliveries() if row["message"] == message]
        payloads = {row["subscriber"]: row["payload"] for row in rows}
        title = f"{message} as {len(subscribers)} subscribers get it"
        table = Table(*subscribers, title=title, title_justify="left", expand=True)
        table.add_row(*(_indented(payloads[subscriber]) for subscriber in subscribers))
        self.console.print(table)

    def show_letters(self) -> None:
        """The dead letters, with the spot."""
        letters = DeadLetters(self.settings.dead_letters)
        for publication in letters.published():
            for batch in letters.read(publication):
                for row in batch.to_pylist():
                    spot = marked(row["raw"].decode(), row["line"], row["column"], width=60)
                    self.console.print(Text(f"{row['id']} is a dead letter: {row['reason']}\n{spot}", "red"))

    def sum_up(self) -> None:
        """How it went, and where things are."""
        (source,) = self.board.now().sources
        totals = source.totals
        self.console.rule("Summary")
        self.console.print(
            f"{totals.read} messages in {totals.batches} batches = {totals.matched} matched + "
            f"{totals.unmatched} unmatched + {totals.dead} dead; {totals.deliveries} deliveries "
            f"from {totals.candidates} candidates; generation {self.board.now().generation}.",
            highlight=False,
        )
        self.console.print(
            "Your own:  [bold]tamis subscriptions add QUERY --subscriber YOU[/], then [bold]tamis run[/], "
            "and move files into inbox/. See docs/operations.md."
        )


def _indented(xml: bytes) -> Syntax:
    """XML to look at."""
    root = minidom.parseString(xml).documentElement
    lines = "" if root is None else root.toprettyxml(indent="  ")
    return Syntax(lines.rstrip(), "xml", word_wrap=True, background_color="default", theme="ansi_dark")


def main() -> None:
    """Run it in a folder that goes away."""
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as folder:
        Demo(Path(folder), Console()).run()


if __name__ == "__main__":
    main()
