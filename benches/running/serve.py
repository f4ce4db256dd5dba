"""What the service holds: the highest rate without growing lag, what one waits for at it, and a hard kill."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benches.checks import Check
from benches.oracle import confirm
from benches.running.job import JobBenchError
from benches.running.load import Load, Show, Stretch
from benches.running.service import RunningService, ServiceFolder
from tamis.bench.measure import build
from tamis.cli.progress import bar
from tamis.model.progress import Report
from tamis.workload import StockOptions, stock_messages, stock_subscriptions

WARM_UP_S, WARM_UP_RATE = 20, 200
"""Seconds of messages before those that count: Spark compiles what it has met often."""

WARM_UPS = 5
"""So often at most; a machine that is busy otherwise may never be ready."""

FIRST_RATE = 500
"""Where the search begins; then twice as much, until it is too much."""

LOWEST_RATE = 50
"""Below it nothing is worth a search."""

TRIED_S = 15
"""Seconds for which a rate is tried."""

CLOSE_ENOUGH = 1.15
"""The search ends when the rate that was too high is at most so many times the one that was held."""

STEP_BACK = 0.9
"""What a rate is lowered by that was held for a short time only."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class ServeWorkload:
    """Quotes in batches over HTTP; the figures of the project are made with the defaults."""

    subscriptions: int = 50_000
    subscribers: int = 20
    """Who share them; each holds a stream of events open."""
    seconds: int = 60
    """How long the highest rate is held."""
    rate: int | None = None
    """Messages a second; searched for unless given."""
    kill: bool = False
    """Whether it is also killed hard, at half of that rate."""

    def messages(self) -> Iterator[bytes]:
        """As many as anybody wants; each concerns about one subscription."""
        return stock_messages(self._stock(), seed="1")

    def queries(self) -> Sequence[str]:
        return list(stock_subscriptions(self._stock(), seed="1"))

    def _stock(self) -> StockOptions:
        endless = 1_000_000_000
        return StockOptions(self.subscriptions, endless, endless * min(5_000, self.subscriptions) // 5_000)


@dataclass(frozen=True)
class KillResult:
    """What came of a hard kill of the service and its job in the middle."""

    rate: float
    messages: int
    deliveries: int
    """All that had to arrive, and did, once."""
    down_s: float
    """From the kill until a delivery arrived again."""
    caught_up_s: float
    """From the last message until its delivery, the longest of the last second."""
    again: int
    """Deliveries that were asked for once more, all with the ids they had."""


@dataclass(frozen=True)
class ServeResult:
    """The figures."""

    subscriptions: int
    distinct: int
    subscribers: int
    rate: float
    """The highest that was held, or the one that was given: messages a second."""
    held: bool
    """Whether lag did not grow."""
    seconds: float
    messages: int
    deliveries: int
    median_s: float
    """From when a message was due to be sent, until a subscriber had its delivery; so are the next three."""
    p90_s: float
    p99_s: float
    most_s: float
    accepted_median_s: float
    """From sending a request until its messages were accepted."""
    accepted_p99_s: float
    confirmed_pairs: int
    """Answers of the oracle that lxml gave too."""
    kill: KillResult | None
    wrong: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        told: dict[str, Any] = _rounded(asdict(self))
        return told


def measure(workload: ServeWorkload, *, report: Report | None = None, say: Say | None = None) -> ServeResult:
    """Start the service, search for the rate, hold it, and perhaps kill it."""
    told, show = say or (lambda _text: None), report or (lambda _done, _total: None)
    queries = workload.queries()
    sample = list(islice(workload.messages(), 100))
    index, _, _ = build(queries, sample)
    confirmation = confirm(index, sample, queries)
    with tempfile.TemporaryDirectory() as name, ExitStack() as services:
        folder = ServiceFolder.make(Path(name) / "service", queries, workload.subscribers)
        service = services.enter_context(folder.running())

        async def loaded() -> tuple[Stretch, KillResult | None, list[str]]:
            async with Load(folder, index, workload.messages()) as load:
                await _warm_up(load, min(WARM_UP_RATE, workload.rate or WARM_UP_RATE), show, told)
                stretch = await _hold(load, workload, show, told)
                kill: KillResult | None = None
                wrong: list[str] = []
                if workload.kill:
                    kill, wrong = await _kill(load, workload, stretch.rate, services, service, show)
                if load.strange:
                    wrong.append(f"{load.strange} deliveries came twice, or to the wrong subscription")
                return stretch, kill, wrong

        stretch, kill, wrong = asyncio.run(loaded())
    return ServeResult(
        subscriptions=len(queries),
        distinct=index.stats().queries,
        subscribers=workload.subscribers,
        rate=stretch.rate,
        held=stretch.is_held,
        seconds=stretch.seconds,
        messages=stretch.messages,
        deliveries=len(stretch.waits),
        median_s=stretch.percentile(50),
        p90_s=stretch.percentile(90),
        p99_s=stretch.percentile(99),
        most_s=stretch.percentile(100),
        accepted_median_s=float(np.median(stretch.accepted)),
        accepted_p99_s=float(np.percentile(stretch.accepted, 99)),
        confirmed_pairs=confirmation.pairs,
        kill=kill,
        wrong=(*wrong, *confirmation.problems("lxml")),
    )


async def _warm_up(load: Load, rate: int, show: Show, say: Say) -> None:
    """Until a low rate is held: what a cold start does to it says nothing of a higher one."""
    for _ in range(WARM_UPS):
        stretch = await load.publish(rate, WARM_UP_S, show)
        say(f"warm-up: {_line(stretch).strip()}")
        if stretch.is_held:
            return


async def _hold(load: Load, workload: ServeWorkload, show: Show, say: Say) -> Stretch:
    """The highest rate, for as long as it is wanted."""
    if workload.rate is not None:
        return await load.publish(workload.rate, workload.seconds, show)
    rate = await _search(load, show, say)
    while True:
        stretch = await load.publish(rate, workload.seconds, show)
        say(_line(stretch))
        if stretch.is_held:
            return stretch
        rate = round(rate * STEP_BACK)


async def _search(load: Load, show: Show, say: Say) -> int:
    """A rate that is held for a short time, where one that is a little higher is not."""
    held, too_high, rate = 0, None, FIRST_RATE
    while True:
        stretch = await load.publish(rate, TRIED_S, show)
        say(_line(stretch))
        if stretch.is_held:
            held = rate
        else:
            too_high = rate
        if too_high is None:
            rate = 2 * held
        elif not held:
            rate = too_high // 2
            if rate < LOWEST_RATE:
                reason = f"not even {too_high} messages a second are held: is the machine busy otherwise?"
                raise JobBenchError("too-slow", reason)
        elif too_high <= held * CLOSE_ENOUGH:
            return held
        else:
            rate = round(sqrt(held * too_high))


async def _kill(
    load: Load, workload: ServeWorkload, rate: float, services: ExitStack, service: RunningService, show: Show
) -> tuple[KillResult, list[str]]:
    """Kill the service in the middle of publishing, and start it again at once."""
    load.keep()
    publishing = asyncio.create_task(load.publish(rate / 2, workload.seconds, show))
    await asyncio.sleep(workload.seconds / 2)
    await asyncio.to_thread(service.kill)
    killed = time.monotonic()
    await asyncio.to_thread(services.enter_context, service.folder.running())
    stretch = await publishing
    again, different = await load.receive_again()
    arrivals = [due + wait for due, wait in stretch.waits if due + wait > killed]
    last = max(due for due, _ in stretch.waits) - 1
    result = KillResult(
        rate=stretch.rate,
        messages=stretch.messages,
        deliveries=len(stretch.waits),
        down_s=min(arrivals, default=killed) - killed,
        caught_up_s=max(wait for due, wait in stretch.waits if due >= last),
        again=again,
    )
    problem = f"{different} deliveries did not come again, or with other ids"
    return result, [problem] if different else []


def run(run: Mapping[str, Any]) -> tuple[dict[str, Any], list[Check], list[str]]:
    """A run of a workload's file: figures, bars, and what is wrong."""
    with bar(run["name"]) as report:
        result = measure(ServeWorkload(**run["serve"]), report=report)
    bars = run.get("bars", {})
    checks = []
    if "rate" in bars:
        checks.append(Check("messages a second, held", result.rate, bars["rate"], at_least=True))
    named = {"median": ("publish to delivery, median, s", result.median_s)}
    named["p99"] = ("publish to delivery, 99 of 100, s", result.p99_s)
    checks += [Check(*named[name], bars[name]) for name in named if name in bars]
    return result.as_dict(), checks, list(result.wrong)


def table(result: ServeResult) -> Table:
    """For people."""
    about = (
        f"{result.rate:,.0f} messages a second for {result.seconds:.0f} s, "
        f"{result.subscriptions:,} subscriptions: "
        f"{result.messages:,} messages, {result.deliveries:,} deliveries, "
        f"{'none lost, none doubled' if not result.wrong else 'WRONG'}"
    )
    made = Table("", "seconds", title=about, title_justify="left")
    made.add_row("from publishing to a delivery received, median", f"{result.median_s:.2f}")
    made.add_row("90 of 100 within", f"{result.p90_s:.2f}")
    made.add_row("99 of 100 within", f"{result.p99_s:.2f}")
    made.add_row("the last one", f"{result.most_s:.2f}")
    made.add_row("until a request was accepted, median", f"{result.accepted_median_s:.3f}")
    made.add_row("99 of 100 within", f"{result.accepted_p99_s:.3f}")
    if result.kill is not None:
        made.add_section()
        told = f"killed hard at {result.kill.rate:,.0f} a second: until a delivery arrived again"
        made.add_row(told, f"{result.kill.down_s:.2f}")
        told = f"all {result.kill.deliveries:,} deliveries arrived; the last ones after"
        made.add_row(told, f"{result.kill.caught_up_s:.2f}")
    return made


def _line(stretch: Stretch) -> str:
    verdict = "held" if stretch.is_held else "too much"
    return (
        f"{stretch.rate:>7,.0f} messages a second for {stretch.seconds:.0f} s: {verdict}; "
        f"median {stretch.percentile(50):.2f} s, 99 of 100 within {stretch.percentile(99):.2f} s"
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, 6) if isinstance(value, float) else value
