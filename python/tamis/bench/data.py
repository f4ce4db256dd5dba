"""Measures local data: filters and transformations with look-ups against messages that carry the columns.

One thread, one interpreter, medians. A message `<trade symbol="S7">` meets one record, which its twin with
columns contains as an element `row`. The queries of both are the same conditions on it.
"""

import gc
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa

import tamis
from tamis.bench import ROUNDS
from tamis.bench.measure import array, count_matches, parse_with_expat, timed, total
from tamis.model.data import Data, DataFiles
from tamis.stored_data import StoredData, build_data, change_data, open_data

NAME = "companies"
SECTORS = 1000
SIZES = 1000
CHUNK = 10_000
"""Records that are given to the kernel at once."""

_CHILD = """
import sys
from tamis import Index
from tamis.stored_data import open_data

def private() -> int:
    lines = (line.split() for line in open("/proc/self/smaps_rollup"))
    return sum(int(line[1]) << 10 for line in lines if line[0] in ("Private_Clean:", "Private_Dirty:"))

index = Index()
before = private()
index.attach("companies", open_data(sys.argv[1], sys.argv[2]))
index.insert(1, "//trade[@symbol = collection('companies')/row[sector = 's1']/symbol]")
index.match(b"<trade symbol='S1'/>")
print(private() - before)
"""


@dataclass(frozen=True)
class DataSize:
    """How much is measured."""

    subscriptions: int = 100_000
    rows: int = 1_000_000
    messages: int = 2000
    transformations: int = 10_000
    upserts: int = 1000


@dataclass(frozen=True)
class DataResult:
    """Ratios, with what each is of."""

    warm: float
    """Filters, against messages that carry the columns, once their records were met."""
    first: float
    """The same for records that are met first."""
    candidates: float
    more_subscriptions: float
    """Ten times as many subscriptions with the same results."""
    more_rows: float
    """Three times as many rows, against a tenth, with the same results."""
    transformations: float
    """Transformations, against messages that carry the columns."""
    build: float
    """Building, against expat over the records."""
    size: float
    """The segment, against the records."""
    open: float
    """Opening, against building."""
    upserts: float
    """A change, against building."""
    private: float
    """The private memory of a second process, against the segment."""
    matches: int
    warm_us: float
    columns_us: float
    build_s: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def row(place: int) -> bytes:
    """A record."""
    random = Random(place)
    sector, size = random.randrange(SECTORS), random.randrange(SIZES)
    return (
        f"<row><symbol>S{place}</symbol><name>Company number {place}</name><sector>s{sector}</sector>"
        f"<size>{size}</size></row>"
    ).encode()


def rows(first: int, end: int) -> Iterator[list[bytes]]:
    """Records in chunks."""
    for start in range(first, end, CHUNK):
        yield [row(place) for place in range(start, min(start + CHUNK, end))]


def conditions(count: int) -> list[str]:
    """Conditions on records, all different; those after the first 100,000 hold of none."""
    within = SECTORS * 100
    return [
        f"sector = 's{place % SECTORS}' and size > {place // SECTORS * 10}"
        if place < within
        else f"sector = 'none{place % (10 * SECTORS)}' and size > {place // SECTORS}"
        for place in range(count)
    ]


def loaded(queries: Sequence[str], data: StoredData | Data | None) -> tamis.Index:
    """An index with queries."""
    index = tamis.Index()
    if data is not None:
        index.attach(NAME, data)
    targets = pa.array(range(1, len(queries) + 1), pa.uint64())
    refused = index.load(pa.table({"target": targets, "query": pa.array(queries, pa.large_string())}))
    if refused.num_rows:
        raise ValueError(str(refused.slice(0, 1).to_pylist()))
    return index


def joined(count: int) -> list[str]:
    """Filters with look-ups."""
    form = "//trade[@symbol = collection('companies')/row[{}]/symbol]"
    return [form.format(condition) for condition in conditions(count)]


def measure_data(size: DataSize, *, rounds: int = ROUNDS) -> DataResult:
    """Measure all ratios; `ValueError` if results differ."""
    random = Random(1)
    near = max(size.rows // 10, 1)
    places = [random.randrange(near) for _ in range(size.messages)]
    plain = [f'<trade symbol="S{place}"><price>{place % 97}</price></trade>'.encode() for place in places]
    rich = [
        f'<trade symbol="S{place}"><price>{place % 97}</price>'.encode() + row(place) + b"</trade>"
        for place in places
    ]
    given, columns = array(plain), array(rich)
    with tempfile.TemporaryDirectory() as folder:
        build_s, files = built(Path(folder), rows(0, size.rows))
        records = [one for chunk in rows(0, size.rows) for one in chunk]
        xml = sum(map(len, records))
        expat_s = timed(parse_with_expat, records)[0]
        del records
        open_s = median(timed(open_data, folder, files.manifest)[0] for _ in range(rounds))
        upserted = [[row(place).replace(b"Company", b"Firm") for place in range(size.upserts)]]
        change_s = timed(lambda: change_data(folder, files.manifest, upserts=upserted))[0]
        data = open_data(folder, files.manifest)
        private = private_bytes(folder, files)

        with_data = loaded(joined(size.subscriptions), data)
        alone = loaded([f"//trade/row[{one}]/symbol" for one in conditions(size.subscriptions)], None)
        found, expected = with_data.match_batch(given), alone.match_batch(columns)
        if as_sets(found) != as_sets(expected):
            raise ValueError("the filters match otherwise than on messages with columns")
        warm_s, columns_s = alternating(rounds, [(with_data, given), (alone, columns)])
        first_s, first_columns_s = first_met(rounds, folder, (with_data, data, plain), (alone, None, rich))

        more = loaded(joined(10 * size.subscriptions), data)
        more_s, fewer_s = alternating(rounds, [(more, given), (with_data, given)])
        del more
        few_files = built(Path(folder, "few"), rows(0, near))[1]
        many_files = built(Path(folder, "many"), rows(0, 3 * size.rows))[1]
        few = loaded(joined(size.subscriptions), open_data(Path(folder, "few"), few_files.manifest))
        many = loaded(joined(size.subscriptions), open_data(Path(folder, "many"), many_files.manifest))
        many_s, few_s = alternating(rounds, [(many, given), (few, given)])
        del few, many, with_data, alone

        enriched, carried = transforming(size.transformations, data)
        times: list[list[float]] = [[], []]
        for _ in range(rounds + 1):
            times[0].append(timed(enriched.transform_batch, given)[0])
            times[1].append(timed(carried.transform_batch, columns)[0])
        enriched_s, carried_s = median(times[0]), median(times[1])
    return DataResult(
        warm=warm_s / columns_s,
        first=first_s / first_columns_s,
        candidates=total(found, "candidates") / max(total(expected, "candidates"), 1),
        more_subscriptions=more_s / fewer_s,
        more_rows=many_s / few_s,
        transformations=enriched_s / carried_s,
        build=build_s / expat_s,
        size=files.bytes / xml,
        open=open_s / build_s,
        upserts=change_s / build_s,
        private=private / files.bytes,
        matches=count_matches(found),
        warm_us=warm_s / size.messages * 1e6,
        columns_us=columns_s / size.messages * 1e6,
        build_s=build_s,
    )


def built(folder: Path, chunks: Iterator[list[bytes]]) -> tuple[float, DataFiles]:
    """Build data; the time without that of generating records."""
    given = [array(chunk) for chunk in chunks]
    return timed(lambda: build_data(folder, given, key="/row/symbol"))


def as_sets(matched: pa.RecordBatch) -> list[frozenset[int]]:
    """The queries that match, by message."""
    lists: Any = matched.column("queries")
    return [frozenset(queries) for queries in lists.to_pylist()]


def alternating(rounds: int, work: Sequence[tuple[tamis.Index, Any]]) -> list[float]:
    """The medians of matching, alternating, with warm caches."""
    for index, messages in work:
        index.match_batch(messages)
    times: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for place, (index, messages) in enumerate(work):
            times[place].append(timed(index.match_batch, messages)[0])
    return [median(each) for each in times]


def first_met(
    rounds: int, folder: str, *both: tuple[tamis.Index, StoredData | None, Sequence[bytes]]
) -> list[float]:
    """The medians for the second half of the messages, matched first after the first half."""
    times: list[list[float]] = [[] for _ in both]
    for place, (index, data, messages) in enumerate(both):
        half = len(messages) // 2
        directory = Path(folder, f"index{place}")
        index.snapshot(directory)
        for _ in range(rounds):
            fresh = tamis.Index.open(directory)
            if data is not None:
                fresh.attach(NAME, data)
            fresh.match_batch(array(messages[:half]))
            times[place].append(timed(fresh.match_batch, array(messages[half:]))[0])
            del fresh
            gc.collect()
    return [median(each) for each in times]


def transforming(count: int, data: StoredData) -> tuple[tamis.Index, tamis.Index]:
    """Transformations with look-ups, and those that find the same in the message."""
    look_up = (
        "for $t in //trade, $c in collection('companies')/row[symbol = $t/@symbol][{}] "
        "return <deal>{{ $c/name, $t/price }}</deal>"
    )
    carried = "for $t in //trade, $c in $t/row[{}] return <deal>{{ $c/name, $t/price }}</deal>"
    own = conditions(count)
    return (
        loaded([look_up.format(one) for one in own], data),
        loaded([carried.format(one) for one in own], None),
    )


def private_bytes(folder: str, files: DataFiles) -> int:
    """What a second process adds to its private memory when it opens the data and joins a message with it."""
    command = [sys.executable, "-c", _CHILD, folder, files.manifest]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
