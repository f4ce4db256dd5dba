r"""`make demo NETWORK=1`: six brokers in this process, on one Spark session, linked by directories.

    one – two – three
     |
    four – five
      \___ six

Three and six publish; two, five and six subscribe. A message crosses a link only if somebody behind it wants
it.
"""

import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.catalog import Catalog
from tamis.cli.crossing import crossings
from tamis.engine import Index
from tamis.errors import TamisError
from tamis.jvm.fork_server import fork_server
from tamis.jvm.launch import embedded_jvm
from tamis.model.subscription import NewSubscription
from tamis.settings import Settings, load_settings
from tamis.sinks.outbox import Outbox
from tamis.spark.job import Job
from tamis.spark.session import early_session
from tamis.spark.worker.without_pandas import without_pandas
from tamis.status import LinkReport, StatusBoard, StatusError, read_status

LINKS = (("one", "two"), ("two", "three"), ("one", "four"), ("four", "five"), ("four", "six"))

BROKERS = ("one", "two", "three", "four", "five", "six")

PUBLISHERS = ("three", "six")

SUBSCRIPTIONS = {
    "two": [("harbour office", "harbour", "//story[topic = 'ports']")],
    "five": [
        ("night desk", "urgent", "/story[@urgency <= 2]"),
        ("archive", "archive", "for $s in /story[topic = 'ports'] return <kept>{ $s/headline }</kept>"),
    ],
    "six": [("weather map", "storms", "/story[contains(headline, 'torm')][topic = 'weather']")],
}

STORIES = (
    ("three", "ferry.xml", 5, "ports", "The new ferry"),
    ("three", "storm.xml", 1, "weather", "Storm over the strait"),
    ("three", "match.xml", 6, "sport", "One all"),
    ("six", "crane.xml", 2, "ports", "A crane fell"),
    ("six", "cup.xml", 6, "sport", "The cup is ours"),
)

SETTINGS = """
interval = 0.3
sample = false
[spark]
master = "local[2]"
[broker]
name = "{name}"
network = "../network.toml"
"""

SOURCE = '[[source]]\nname = "from-{name}"\npath = "inbox"\n'

TIMEOUT_S = 300.0
"""No step takes longer, unless something is wrong."""


@dataclass
class Broker:
    """A broker and its job, which runs in a thread."""

    name: str
    folder: Path
    settings: Settings = field(init=False)
    catalog: Catalog = field(init=False)
    error: BaseException | None = None
    """Why the job ended."""

    def __post_init__(self) -> None:
        (self.folder / "inbox").mkdir(parents=True)
        source = SOURCE.format(name=self.name) if self.name in PUBLISHERS else ""
        (self.folder / "tamis.toml").write_text(SETTINGS.format(name=self.name) + source)
        self.settings = load_settings(self.folder / "tamis.toml", environment={})
        self.catalog = Catalog(self.settings.catalog)

    def run(self, spark: Any, until: Callable[[], bool]) -> None:
        """Run the job on a Spark session that is there; in a thread."""
        try:
            board = StatusBoard(self.settings.state, [one.name for one in self.settings.inputs])
            Job(self.settings, board, lambda: spark).run(until)
        except BaseException as error:
            self.error = error

    def is_running(self) -> bool:
        try:
            return read_status(self.settings.state).state == "running"
        except StatusError:
            return False

    def established(self) -> bool:
        """Whether all that is subscribed to here is established for all brokers."""
        newest = self.catalog.version.count
        counts = self.catalog.routes.established()
        return all(counts.get(name, -1) >= newest for name in BROKERS)

    def publish(self, name: str, content: bytes) -> None:
        """Files enter an inbox by a rename."""
        draft = self.folder / name
        draft.write_bytes(content)
        draft.rename(self.folder / "inbox" / name)

    def links(self) -> tuple[LinkReport, ...]:
        try:
            return read_status(self.settings.state).links
        except StatusError:
            return ()

    def deliveries(self) -> Iterator[tuple[str, str]]:
        """The message and the subscriber of each delivery."""
        outbox = Outbox(self.folder / "outbox")
        for publication in outbox.published():
            for rows in outbox.read(publication):
                for row in rows.to_pylist():
                    yield row["message"], row["subscriber"]


class NetworkDemo:
    """The steps of the demo."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._console = console
        names = "".join(f'[[broker]]\nname = "{name}"\n' for name in BROKERS)
        links = "".join(f'[[link]]\nends = ["{a}", "{b}"]\npath = "links/{a}-{b}"\n' for a, b in LINKS)
        (folder / "network.toml").write_text(names + links)
        self._brokers = {name: Broker(name, folder / name) for name in BROKERS}

    def run(self) -> None:
        """Run all steps."""
        self._subscribe()
        stop = threading.Event()
        without_pandas()
        first = self._brokers["one"].settings
        with ExitStack() as stack:
            with self._console.status("starting Spark …"):
                server = stack.enter_context(fork_server(first))
                jvm = stack.enter_context(embedded_jvm(first))
                if server is not None:
                    server.start()
                spark = stack.enter_context(early_session(first, jvm))()
            threads = []
            try:
                for one in self._brokers.values():
                    threads.append(threading.Thread(target=one.run, args=(spark, stop.is_set)))
                    threads[-1].start()
                    # One by one: Spark waits only a few seconds for each of its Python processes.
                    with self._console.status(f"starting the job of {one.name} …"):
                        self._wait(one.is_running, f"the job of {one.name}")
                self._establish()
                self._publish()
                self._sum_up()
            finally:
                stop.set()
                with self._console.status("stopping six jobs …"):
                    for thread in threads:
                        thread.join()

    def _subscribe(self) -> None:
        table = Table("broker", "subscriber", "query", title="Subscriptions", title_justify="left")
        for name, some in SUBSCRIPTIONS.items():
            for subscriber, id, query in some:
                self._brokers[name].catalog.add(NewSubscription(subscriber, query, id))
                table.add_row(name, subscriber, Text(query))
        self._console.print(table)

    def _establish(self) -> None:
        self._console.rule("Brokers tell each other what is wanted")
        with self._console.status("waiting for six brokers …"):
            self._wait(self._is_established, "subscriptions to be established")
        self._print("Each subscription is established for all six brokers: from now on, nothing is missed.")
        table = Table("broker", "its neighbour", "wants rows", title_justify="left")
        for one in self._brokers.values():
            for link in one.links():
                table.add_row(one.name, link.neighbour, str(link.routes))
        self._console.print(table)

    def _is_established(self) -> bool:
        links = [link for one in self._brokers.values() for link in one.links()]
        return (
            all(one.established() for one in self._brokers.values())
            and len(links) == 2 * len(LINKS)
            and all(link.routed for link in links)
        )

    def _publish(self) -> None:
        self._console.rule("Three and six publish")
        due = _due()
        for name, message, urgency, topic, headline in STORIES:
            content = _story(urgency, topic, headline)
            self._brokers[name].publish(message, content)
            broker = self._brokers[name].settings.broker
            assert broker is not None
            for one in crossings(self._brokers[name].settings, broker, content):
                verb = "crosses to" if one.crosses else "does not cross to"
                self._print(
                    Text(f"{message} {verb} {one.neighbour}: {one.why}", "" if one.crosses else "dim")
                )
        with self._console.status("waiting for deliveries …"):
            self._wait(lambda: due <= self._delivered(), "deliveries")
        table = Table("message", "published at", "reached", title="Deliveries", title_justify="left")
        for root, message, *_ in STORIES:
            reached = [
                f"{subscriber} at {name}"
                for name, one in self._brokers.items()
                for at, subscriber in one.deliveries()
                if at == message
            ]
            table.add_row(message, root, "\n".join(sorted(reached)) or Text("nobody", "dim"))
        self._console.print(table)

    def _delivered(self) -> Counter[tuple[str, str]]:
        return Counter(row for one in self._brokers.values() for row in one.deliveries())

    def _sum_up(self) -> None:
        """Who was sent how much, against flooding."""
        self._console.rule("Summary")
        # The job reports links a moment after it wrote them.
        self._wait(lambda: sum(link.received for link in self._links()) == self._crossed(), "reports")
        table = Table("from", "to", "messages", "if all crossed", "in vain", title_justify="left")
        for name, one in self._brokers.items():
            for link in one.links():
                back = next(some for some in self._brokers[link.neighbour].links() if some.neighbour == name)
                if link.offered:
                    table.add_row(
                        name, link.neighbour, *map(str, (link.messages, link.offered, back.in_vain))
                    )
        self._console.print(table)
        flooding = len(STORIES) * len(LINKS)
        self._print(
            f"{len(STORIES)} messages crossed {self._crossed()} links; flooding would be {flooding}. "
            f"{self._delivered().total()} deliveries, each once."
        )
        self._console.print("Next: docs/network.md.")

    def _links(self) -> Iterable[LinkReport]:
        return (link for one in self._brokers.values() for link in one.links())

    def _crossed(self) -> int:
        return sum(link.messages for link in self._links())

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not is_done():
            for one in self._brokers.values():
                if one.error is not None:
                    raise TamisError("demo-failed", f"the job of {one.name} ended") from one.error
            if time.monotonic() > end:
                raise TamisError("demo-stuck", f"waited {TIMEOUT_S:.0f} s for {what}")
            time.sleep(0.1)

    def _print(self, text: str | Text) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


def _story(urgency: object, topic: object, headline: object) -> bytes:
    return (
        f"<story urgency='{urgency}'><topic>{topic}</topic><headline>{headline}</headline></story>".encode()
    )


def _due() -> Counter[tuple[str, str]]:
    """What one broker with all subscriptions would deliver."""
    index = Index()
    wanted = [(subscriber, query) for some in SUBSCRIPTIONS.values() for subscriber, _, query in some]
    for number, (_, query) in enumerate(wanted):
        index.insert(number, query)
    return Counter(
        (message, wanted[number][0])
        for _, message, *story in STORIES
        for number in index.match(_story(*story))
    )


def main() -> int:
    """Run the demo; it ends by itself."""
    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as name:
        try:
            NetworkDemo(Path(name), Console()).run()
        except TamisError as error:
            cause = "" if error.__cause__ is None else f": {error.__cause__}"
            print(f"the demo failed: {error}{cause}", file=sys.stderr)
            return 1
    return 0
