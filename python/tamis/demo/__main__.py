"""`make demo`: shipped messages and subscriptions, a dead letter, a change while it runs, and traffic."""

import asyncio
import base64
import os
import signal
import sys
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from xml.dom import minidom

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from tamis.client import ClientError
from tamis.demo.broker import Broker, serving
from tamis.demo.participants import Participants
from tamis.errors import TamisError, marked

SHIPPED = files("tamis.demo")

LATE = "second reader"
"""The subscriber who subscribes while the job runs."""

TRAFFIC_S, LINES = 10, 5
"""How long the feed runs, and how many lines report on it."""

AT_A_TIME = 5
"""Messages per request of the feed."""

TIMEOUT_S = 300.0
"""No step takes longer, unless something is wrong."""


class Demo:
    """The steps of the demo."""

    def __init__(self, broker: Broker, participants: Participants, console: Console) -> None:
        self._broker = broker
        self._participants = participants
        self._console = console
        self._shown = 0
        names = sorted(path.name for path in (SHIPPED / "messages").iterdir())
        self._messages = [(name, (SHIPPED / "messages" / name).read_bytes()) for name in names]

    async def run(self, keep: bool) -> None:
        """Run all steps. With `keep`, the feed runs until Ctrl-C."""
        participants = self._participants
        analyst = await self._subscribe()
        self._show_url(keep)
        participants.listen()
        self._console.rule("Messages are published")
        await participants.publish(self._messages[:3])
        with self._console.status("starting the job …"):
            await self._all_delivered()
        self._show("What their subscribers received")
        self._show_forms(self._messages[0][0], ["news ticker", "weather map", "archive"])
        self._console.rule("A message that is cut off")
        await participants.publish(self._messages[3:4])
        await self._all_delivered()
        await self._show_letters()
        self._console.rule("While the job runs, one subscriber is added and one leaves")
        added = await participants.subscribers[LATE].subscribe("/story[company]/headline")
        await participants.subscribers["analyst"].unsubscribe(analyst["id"])
        self._print(Text.assemble(("+ ", "green"), f"{LATE}: {added['query']}"))
        self._print(Text.assemble(("- ", "red"), f"analyst: {analyst['query']}"))
        await participants.publish(self._messages[4:])
        await self._all_delivered()
        self._show("What was received since then")
        await self._show_traffic(keep)
        await self._sum_up()

    async def _subscribe(self) -> dict[str, Any]:
        """Register the shipped subscriptions, of which one is refused; the analyst's."""
        given = tomllib.loads((SHIPPED / "subscriptions.toml").read_text("utf-8"))
        table = Table("subscriber", "query", title="Subscriptions", title_justify="left", show_lines=True)
        made = {}
        with self._console.status("starting the service …"):
            for one in given["subscription"]:
                name, query = one["subscriber"], one["query"]
                try:
                    client = self._participants.subscribers[name]
                    made[name] = await client.subscribe(query, namespaces=given["namespaces"])
                    table.add_row(name, Text(query))
                except ClientError as error:
                    if "position" not in error.detail:
                        raise
                    at = error.detail["position"]
                    spot = marked(query, at["line"], at["column"], width=50)
                    table.add_row(name, Text(f"{spot}\nrefused: {error.reason}", style="red"))
        self._console.print(table)
        return made["analyst"]

    def _show_url(self, keep: bool) -> None:
        ending = "until Ctrl-C" if keep else "until this ends; `make demo KEEP=1` keeps it"
        self._print(Text.assemble("The page: ", (self._broker.url, "bold"), f", {ending}"))
        self._print(Text.assemble("Log in with ", (self._broker.admin, "bold")))

    async def _totals(self) -> dict[str, Any]:
        """The counts of the job so far."""
        job = (await self._participants.admin.status())["job"]
        return {} if job is None else job["sources"][0]["totals"]

    async def _all_delivered(self) -> None:
        """Wait until all published messages are processed and all deliveries have arrived."""
        participants = self._participants
        totals: dict[str, Any] = {}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while (
                    totals.get("read", 0) < participants.published
                    or len(participants.arrivals) < totals["deliveries"]
                ):
                    participants.check()
                    await asyncio.sleep(0.1)
                    totals = await self._totals()
        except TimeoutError as error:
            so_far = f"{self._counts()}; the job's totals: {totals}"
            raise TamisError("demo-stuck", f"no progress for {TIMEOUT_S:.0f} s: {so_far}") from error

    def _show(self, title: str) -> None:
        """Which of the new messages reached whom."""
        reached: dict[str, list[str]] = {}
        for arrival in self._participants.arrivals[self._shown :]:
            reached.setdefault(arrival.delivery.message, []).append(arrival.subscriber)
        self._shown = len(self._participants.arrivals)
        table = Table("message", "reached", title=title, title_justify="left", show_lines=True)
        for message, subscribers in sorted(reached.items()):
            table.add_row(message, "\n".join(sorted(subscribers)))
        self._console.print(table)

    def _show_forms(self, message: str, subscribers: Sequence[str]) -> None:
        """One message in the forms that several subscribers get."""
        payloads = {
            arrival.subscriber: arrival.delivery.payload
            for arrival in self._participants.arrivals
            if arrival.delivery.message == message
        }
        title = f"{message} as {len(subscribers)} subscribers get it"
        table = Table(*subscribers, title=title, title_justify="left", expand=True)
        table.add_row(*(_indented(payloads[subscriber]) for subscriber in subscribers))
        self._console.print(table)

    async def _show_letters(self) -> None:
        """The dead letters, with the position of the error."""
        admin = self._participants.admin
        for listed in await admin.dead_letters():
            letter = await admin.dead_letter(listed["letter"])
            raw = base64.b64decode(letter["base64"]).decode()
            spot = marked(raw, letter["line"], letter["column"], width=60)
            self._print(Text(f"{letter['message']} is a dead letter: {letter['reason']}\n{spot}", "red"))

    async def _show_traffic(self, keep: bool) -> None:
        """Run the feed for a while, or until Ctrl-C."""
        self._console.rule("Traffic: a feed publishes, all subscribers listen")
        enough = asyncio.Event()
        if keep:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, enough.set)
        whole = [*self._messages[:3], *self._messages[4:]]
        feed = asyncio.create_task(self._participants.publish_until(enough, whole, AT_A_TIME))
        line = 0
        while not enough.is_set() and not feed.done() and (keep or line < LINES):
            line += 1
            try:
                await asyncio.wait_for(enough.wait(), TRAFFIC_S / LINES)
            except TimeoutError:
                self._show_counts()
        enough.set()
        await feed
        with self._console.status("waiting for the last deliveries …"):
            await self._all_delivered()

    def _show_counts(self) -> None:
        participants = self._participants
        new = sorted(arrival.seconds for arrival in participants.arrivals[self._shown :])
        self._shown = len(participants.arrivals)
        waited = f", half of the new ones within {new[len(new) // 2]:.1f} s" if new else ""
        self._print(Text(f"{self._counts()}{waited}", "dim"))

    def _counts(self) -> str:
        participants = self._participants
        return (
            f"{participants.published:,} messages published, "
            f"{len(participants.arrivals):,} deliveries received"
        )

    async def _sum_up(self) -> None:
        """The totals, and what to do next."""
        status = await self._participants.admin.status()
        totals = status["job"]["sources"][0]["totals"]
        self._console.rule("Summary")
        self._print(
            f"{totals['read']} messages in {totals['batches']} batches = {totals['matched']} matched + "
            f"{totals['unmatched']} unmatched + {totals['dead']} dead; {totals['deliveries']} deliveries, "
            f"all received, from {totals['candidates']} candidates; generation {status['job']['generation']}."
        )
        self._console.print(
            "Next:  [bold]tamis tokens create --role admin[/], then [bold]tamis serve[/]. "
            "See docs/service.md."
        )

    def _print(self, text: str | Text) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


def _indented(xml: bytes) -> Syntax:
    """Indented XML."""
    root = minidom.parseString(xml).documentElement
    lines = "" if root is None else root.toprettyxml(indent="  ")
    return Syntax(lines.rstrip(), "xml", word_wrap=True, background_color="default", theme="ansi_dark")


async def _run(broker: Broker, console: Console, keep: bool) -> None:
    async with Participants(broker) as participants:
        await Demo(broker, participants, console).run(keep)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


def main() -> int:
    """Run the demo; with `KEEP=1` in the environment, until Ctrl-C; with `NETWORK=1`, that of a network."""
    if _is_on("NETWORK"):
        # It imports Spark, which the other demo does in another process.
        from tamis.demo.network import main as network

        return network()
    given = tomllib.loads((SHIPPED / "subscriptions.toml").read_text("utf-8"))
    names = [one["subscriber"] for one in given["subscription"]]
    with serving([*names, LATE]) as broker:
        try:
            asyncio.run(_run(broker, Console(), _is_on("KEEP")))
        except TamisError as error:
            last = broker.log.read_text(errors="replace")[-2000:]
            print(f"{last}\nthe demo failed: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
