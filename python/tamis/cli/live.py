"""The status of a job in a terminal: a live table, or one line a batch if output is not a terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import ceil

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.settings import ConsoleSink, DirectorySink, Settings, Sink, Source, TopicSink
from tamis.sources.directory import DirectorySource
from tamis.sources.kafka import KafkaSource
from tamis.status import BatchReport, Failure, SourceStatus, Status, StatusBoard
from tamis.status.value import JobState

REFRESHES = 4
"""Redraws per second."""

# Colours of the terminal's palette, readable on light and dark backgrounds; shapes for the colour-blind.
MARKS = {
    "waiting": ("○", "dim"),
    "starting": ("○", "dim"),
    "running": ("●", "green"),
    "stopping": ("●", "magenta"),
    "retrying": ("▲", "bold red"),
    "died": ("▲", "bold red"),
    "stopped": ("■", "dim"),
}

FIGURES = ("messages\n/s", "matches\n/s", "candid.\n: match", "batch", "lag", "gen.", "dead", "errors")

BARS = " ▁▂▃▄▅▆▇█"


@contextmanager
def display(board: StatusBoard, console: Console | None = None) -> Iterator[None]:
    """Show the status on standard output while the job runs."""
    console = console or Console()
    if not console.is_terminal:
        board.on_report(lambda report: print_batch(report, console))
        yield
        return
    with live(board.now, console):
        yield


def announce_start(settings: Settings, board: StatusBoard) -> Console:
    """Print a line when the job starts and when it is ready; returns the console."""
    console = Console()

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    def on_state(state: JobState) -> None:
        # A source that cannot be read is reported as an error.
        if state == "running" and all(source.state != "retrying" for source in board.now().sources):
            sources, targets = settings.sources, settings.sinks
            ways = [", ".join(map(place_name, places)) for places in (sources, targets)]
            say(f"ready: {' → '.join(ways)}")

    board.on_state(on_state)
    say(f"starting Spark ({settings.spark.master}) …")
    return console


def place_name(place: Source | Sink) -> str:
    """Where messages come from or deliveries go to, for people."""
    match place:
        case DirectorySource() | DirectorySink():
            return f"{str(place.path).rstrip('/')}/"
        case KafkaSource():
            return f"Kafka {', '.join(place.topics)}"
        case TopicSink():
            return place.kafka.location
        case ConsoleSink():
            return "this terminal"


def live(status: Callable[[], Status], console: Console) -> Live:
    """A live table; the last state stays on the screen."""
    return Live(console=console, get_renderable=lambda: render(status()), refresh_per_second=REFRESHES)


def print_batch(report: BatchReport, console: Console) -> None:
    """One line for each batch that had messages."""
    if report.read:
        console.print(batch_line(report), highlight=False, markup=False, soft_wrap=True)


def batch_line(report: BatchReport) -> str:
    """The result of a batch in one line."""
    ended = (report.started + timedelta(seconds=report.seconds)).astimezone(UTC)
    parts = [
        f"{ended:%Y-%m-%dT%H:%M:%SZ} {report.source} batch {report.batch}: {report.read} read = "
        f"{report.matched} matched + {report.unmatched} unmatched + {report.dead} dead",
        f"{report.deliveries} deliveries, {report.candidates} candidates",
        f"{report.seconds:.2f} s",
        f"generation {report.generation}",
    ]
    if report.failed:
        parts.append(f"{report.failed} transformations failed")
    if report.skipped_entities:
        parts.append(f"{report.skipped_entities} references to unread entities left out")
    parts += [f"{kind} behind: {count}" for kind, count in (report.lag or {}).items()]
    return ", ".join(parts)


def render(status: Status) -> RenderableType:
    """The table."""
    return Group(_heading(status), _table(status), *_troubles(status))


def tab_rows(status: Status) -> list[list[str]]:
    """The status as rows for programs: one for the job, one for each source, then the errors.

    job      state, generation, subscriptions, time up
    source   name, state, messages/s, matches/s, candidates, deliveries, seconds of the last batch, lag,
             generation, dead, errors
    error    name of the source or empty, code, reason
    """
    rows = [["job", status.state, *_facts(status)]]
    for one in status.sources:
        last, totals = one.last, one.totals
        rates = [f"{one.messages_rate:.2f}", f"{one.matches_rate:.2f}"]
        counts = [str(totals.candidates), str(totals.deliveries)]
        batch = ["", "", ""]
        if last is not None:
            lag = "" if last.lag is None else str(sum(last.lag.values()))
            batch = [f"{last.seconds:.2f}", lag, str(last.generation)]
        errors = [str(totals.dead), str(sum(one.failures.values()))]
        rows.append(["source", one.name, one.state, *rates, *counts, *batch, *errors])
    failing = [(one.name, one.failure) for one in status.sources if one.state == "retrying"]
    for name, failure in [("", status.failure), *failing]:
        if failure is not None:
            rows.append(["error", name, failure.code, failure.reason])
    return rows


def _facts(status: Status) -> list[str]:
    uptime = int((status.now - status.started).total_seconds())
    known = (status.generation, status.subscriptions, uptime)
    return ["" if fact is None else str(fact) for fact in known]


def _heading(status: Status) -> Text:
    mark, style = MARKS[status.state]
    uptime = timedelta(seconds=int((status.now - status.started).total_seconds()))
    facts = [
        "no generation yet" if status.generation is None else f"generation {status.generation}",
        f"{'up' if status.alive else 'ran'} {uptime}",
    ]
    if status.subscriptions is not None:
        facts.insert(1, f"{status.subscriptions:,} subscriptions")
    return Text.assemble(
        (f"tamis {status.version}", "bold"), "  ", (f"{mark} {status.state}", style), "  ", " · ".join(facts)
    )


def _table(status: Status) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    table.add_column(width=1)
    # If the terminal is narrow, names are cut and figures are not.
    table.add_column("source", overflow="ellipsis", vertical="bottom")
    for title in FIGURES:
        table.add_column(title, justify="right", no_wrap=True, vertical="bottom")
    table.add_column("minute", no_wrap=True, vertical="bottom")
    for source in status.sources:
        table.add_row(*_row(source))
    return table


def _row(source: SourceStatus) -> list[RenderableType]:
    mark, style = MARKS[source.state]
    last, totals, failures = source.last, source.totals, sum(source.failures.values())
    return [
        Text(mark, style),
        Text(source.name),
        compact(source.messages_rate),
        compact(source.matches_rate),
        compact(totals.candidates / totals.deliveries) if totals.deliveries else "–",
        "–" if last is None else f"{compact(last.seconds)} s",
        "–" if last is None or last.lag is None else "+".join(map(compact, last.lag.values())),
        "–" if last is None else str(last.generation),
        Text(compact(totals.dead), "magenta" if totals.dead else ""),
        Text(compact(failures), "bold red" if source.state == "retrying" else ""),
        Text(sparkline(source.minute), "cyan"),
    ]


def _troubles(status: Status) -> Iterator[Text]:
    if status.failure is not None:
        yield _trouble("job", status.failure, status.now)
    for source in status.sources:
        if source.state == "retrying" and source.failure is not None:
            yield _trouble(source.name, source.failure, status.now)


def _trouble(name: str, failure: Failure, now: datetime) -> Text:
    ago = compact(max((now - failure.when).total_seconds(), 0))
    return Text.assemble(
        (f"▲ {name}: {failure.code}", "bold red"), f": {failure.reason} ", (f"({ago} s ago)", "dim")
    )


def compact(number: float) -> str:
    """A number in at most five characters, up to a thousand million."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        # Below this, rounding would print 1000 of the smaller unit.
        if number >= size * 0.9995:
            return f"{_digits(number / size)}{unit}"
    return _digits(number)


def _digits(number: float) -> str:
    """Three significant digits."""
    places = 0 if number >= 99.95 or number == int(number) else 1 if number >= 9.995 else 2
    return f"{number:.{places}f}"


def sparkline(values: Sequence[float]) -> str:
    """A sparkline: bars scaled to the largest number; only zero is blank."""
    most = max(values, default=0.0) or 1.0
    return "".join(BARS[ceil(value / most * (len(BARS) - 1))] for value in values)
