"""The jobs that are measured, and what runs on their workers."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from time import perf_counter, process_time
from typing import Any

import pyarrow as pa
from lxml import etree
from pyspark.sql import DataFrame, SparkSession

from benches.second_process import SMAPS
from tamis.engine import Index
from tamis.model.matching import Generation, Limits
from tamis.model.messages import Messages
from tamis.spark import with_matches
from tamis.spark.worker.generations import opened
from tamis.spark.worker.task import MatchTask

Batches = Iterator[pa.RecordBatch]

_LIMITS = Limits()


class ClockedIndex(Index):
    """An index that counts the time spent in the kernel."""

    kernel_elapsed_s = 0.0
    kernel_s = 0.0
    """Processor time."""

    def match_batch(
        self, messages: Messages, *, tenant: str = "", limits: Limits = _LIMITS
    ) -> pa.RecordBatch:
        """As `Index.match_batch`."""
        with self._counting():
            return super().match_batch(messages, tenant=tenant, limits=limits)

    def targets(self, matches: pa.RecordBatch) -> "pa.Array[Any]":
        """As `Index.targets`."""
        with self._counting():
            return super().targets(matches)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        elapsed, processor = perf_counter(), process_time()
        yield
        self.kernel_elapsed_s += perf_counter() - elapsed
        self.kernel_s += process_time() - processor


_clocked: dict[Generation, ClockedIndex] = {}
"""Kept open from task to task, as a worker keeps its indexes otherwise."""


@dataclass(frozen=True)
class Clocks:
    """Seconds that the workers of a job count, added up: accumulators."""

    elapsed: Any
    """From a task's first batch asked for to its last handed over, waiting for Spark included."""
    kernel_elapsed: Any
    worker: Any
    """Processor time meanwhile: Spark's reading and writing, the kernel, and the rest."""
    spark: Any
    kernel: Any

    @classmethod
    def of(cls, session: SparkSession) -> "Clocks":
        """Clocks at zero."""
        return cls(*(session.sparkContext.accumulator(0.0) for _ in fields(cls)))

    def around(
        self, run: Callable[[Batches], Batches], batches: Batches, index: ClockedIndex | None = None
    ) -> Batches:
        """The batches that a task makes, with everything counted that the worker does for them."""
        elapsed, worker = perf_counter(), process_time()
        if index is not None:
            # What earlier tasks counted.
            index.kernel_elapsed_s = index.kernel_s = 0.0
        for batch in run(self._read(batches)):
            written = process_time()
            yield batch
            self.spark.add(process_time() - written)
        self.elapsed.add(perf_counter() - elapsed)
        self.worker.add(process_time() - worker)
        if index is not None:
            self.kernel_elapsed.add(index.kernel_elapsed_s)
            self.kernel.add(index.kernel_s)

    def _read(self, batches: Batches) -> Batches:
        while True:
            read = process_time()
            batch = next(batches, None)
            self.spark.add(process_time() - read)
            if batch is None:
                return
            yield batch


# Steps are objects of importable classes: a worker then finds this module's `_clocked`, not a copy of it.


@dataclass(frozen=True)
class Identity:
    """Every message to a worker and back."""

    clocks: Clocks

    def run(self, batches: Batches) -> Batches:
        """The batches of one task."""
        return self.clocks.around(lambda given: given, batches)


@dataclass(frozen=True)
class Clocked:
    """Matches, and counts in the workers."""

    step: MatchTask
    clocks: Clocks

    def run(self, batches: Batches) -> Batches:
        """The batches of one task."""
        place = self.step.generation
        if place not in _clocked:
            _clocked[place] = ClockedIndex.open(place.directory, place.number, cache_bytes=place.cache_bytes)
        index = _clocked[place]
        return self.clocks.around(lambda given: self.step.run_on(index, given), batches, index)


@dataclass(frozen=True)
class Lxml:
    """The usual way in Spark without tamis: compiled XPath, one by one."""

    queries: Sequence[str]

    def run(self, frames: Iterator[Any]) -> Iterator[Any]:
        """The frames of one task, which are pandas'."""
        compiled = [etree.XPath(f"boolean({query})") for query in self.queries]
        for frame in frames:
            counts = []
            for message in frame["message"]:
                tree = etree.ElementTree(etree.fromstring(message))
                counts.append(sum(bool(holds(tree)) for holds in compiled))
            yield frame[["id"]].assign(matches=counts)


@dataclass(frozen=True)
class Memory:
    """The memory of a worker before it opens an index, and after it has matched."""

    place: Generation

    def run(self, batches: Batches) -> Batches:
        """The batches of one task: one row in place of them all."""
        before = _private_and_shared()[0]
        step = MatchTask(self.place, 0, 0, tenant="", tenant_column=None, limits=_LIMITS, elements=0)
        for _ in step.run_on(opened(self.place).index, batches):
            pass
        private, shared = _private_and_shared()
        values: list[Any] = [[os.getpid()], [before], [private], [shared]]
        yield pa.record_batch(values, names=["process", "before", "private", "shared"])


def _private_and_shared() -> tuple[int, int]:
    """Bytes of this process's memory that it alone has, and that others have too."""
    found = re.findall(r"(\w+):\s+(\d+) kB", SMAPS.read_text("ascii"))
    size = {name: int(kilobytes) << 10 for name, kilobytes in found}
    private, shared = ((f"{kind}_Clean", f"{kind}_Dirty") for kind in ("Private", "Shared"))
    return sum(size[name] for name in private), sum(size[name] for name in shared)


def identity(df: DataFrame, clocks: Clocks) -> DataFrame:
    """The job to compare with."""
    return df.mapInArrow(Identity(clocks).run, df.schema)


def clocked(df: DataFrame, index: Index, clocks: Clocks) -> DataFrame:
    """As `with_matches`; `df` has `id` and `message`."""
    step = MatchTask(index.saved, 1, 1, tenant="", tenant_column=None, limits=_LIMITS, elements=0)
    return df.mapInArrow(Clocked(step, clocks).run, with_matches(df, index).schema)


def with_lxml(df: DataFrame, queries: Sequence[str]) -> DataFrame:
    """How many of the queries match each message, by lxml."""
    return df.mapInPandas(Lxml(tuple(queries)).run, "id bigint, matches bigint")


def with_xpath_boolean(df: DataFrame, queries: Sequence[str]) -> DataFrame:
    """The same by the function that Spark has for it."""
    literals = (query.replace("\\", "\\\\").replace("'", "\\'") for query in queries)
    tests = ", ".join(f"xpath_boolean(message, '{literal}')" for literal in literals)
    text = df.selectExpr("id", "cast(message AS string) AS message")
    return text.selectExpr("id", f"cast(size(filter(array({tests}), holds -> holds)) AS bigint) AS matches")


def memory(df: DataFrame, index: Index) -> DataFrame:
    """One row for each task; `df` has `message` only."""
    columns = ("process", "before", "private", "shared")
    return df.mapInArrow(Memory(index.saved).run, ", ".join(f"{name} bigint" for name in columns))
