"""The job of `tamis run`: one streaming query per source; a query that fails is restarted with backoff."""

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.catalog import Catalog
from tamis.errors import CatalogError, JobError, StoreError, TamisError
from tamis.generations.damage import is_lost
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.jvm.class_archive import ClassArchive
from tamis.model.matching import Generation
from tamis.network.routing_ports import Shown
from tamis.pipeline.batch_log import BatchLog, all_batch_logs
from tamis.pipeline.sample import MessageSample, open_sample
from tamis.settings import Input, Settings
from tamis.sources.arrivals import ArrivalsSource
from tamis.sources.directory import DirectorySource
from tamis.sources.dtd_file import read_schema
from tamis.spark.batch_plan import plan_hash
from tamis.spark.broker_links import BrokerLinks
from tamis.spark.connectors.arrivals import read_arrivals
from tamis.spark.connectors.inbox import read_inbox
from tamis.spark.connectors.kafka import read_kafka
from tamis.spark.connectors.sinks import dead_letter_writer, sinks, sweep
from tamis.spark.error_causes import UNKNOWN, root_cause
from tamis.spark.pipeline import Pipeline
from tamis.spark.warm_up import warm_up
from tamis.status import BatchReport, StatusBoard

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a query that failed is started again; each time twice as many."""

IDLE = "Waiting for"
"""Prefix of Spark's status message for a query that has polled its source and found nothing new."""

UNREACHABLE = ("catalog-unreachable", "store-unreachable")
"""Errors that a starting job retries."""

TICK = 0.1
"""Seconds between two checks of the queries."""

SAMPLE_SECONDS = 60.0
"""Seconds between two writes of the sample of messages."""

LAG_SECONDS = 1.0
"""Seconds between two readings of a query's lag."""


@dataclass
class _Stream:
    """The query of a source and its state."""

    source: Input
    pipeline: Pipeline
    query: StreamingQuery | None = None
    batches: BatchLog | None = None
    pause: float = FIRST_PAUSE
    due: float = 0.0
    """When to start it, by the monotonic clock."""
    lag_due: float = 0.0
    """When to read its lag again, by the monotonic clock."""
    failing: bool = False
    damaged: bool = False
    """Whether it failed because files of a generation are damaged or missing."""
    error: TamisError | None = None
    """Why the last batch failed, if it did."""
    working: threading.Lock = field(default_factory=threading.Lock)
    """Held during a batch: a stop waits for it."""


class Job:
    """Runs until it is stopped. The next run finishes batches that this one began."""

    def __init__(
        self,
        settings: Settings,
        board: StatusBoard,
        session: Callable[[], SparkSession],
        archive: ClassArchive | None = None,
    ) -> None:
        """`session`: waits for the Spark session, which jobs may share. `archive`: of an embedded Spark."""
        self._settings = settings
        self._board = board
        self._session = session
        self._archive = archive
        self._is_ready = False
        self._warm_up: threading.Thread | None = None
        self._first_generation = -1
        """What the plan of a batch is run with, before the first message."""
        self._stack = ExitStack()
        self._sample: MessageSample | None = None
        self._sample_saved = time.monotonic()
        self._publishing = threading.Lock()
        self._stopping = threading.Event()

    def run(self, until: Callable[[], bool]) -> None:
        """Start, supervise the queries until `until()` is true, then stop after the running batches."""
        with self._stack:
            if not self._start_with_retries(until):
                return
            while not until():
                for stream in self._streams:
                    self._supervise(stream)
                    self._update_lag(stream)
                self._report_ready()
                self._make_class_archive()
                self._save_sample(SAMPLE_SECONDS)
                self._links.report()
                self._board.heartbeat()
                time.sleep(TICK)
            self._stop()
            self._save_sample()

    def _start_with_retries(self, until: Callable[[], bool]) -> bool:
        """Start; retry while catalog or store are unreachable. False if `until()` is true before."""
        pause = FIRST_PAUSE
        while not until():
            try:
                self._start()
            except (CatalogError, StoreError) as error:
                if error.code not in UNREACHABLE:
                    raise
                self._stack.close()
                log.error("%s; retrying in %.0f s", error, pause)
                self._board.failed(None, error)
                due = time.monotonic() + pause
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                return True
            while time.monotonic() < due and not until():
                self._board.heartbeat()
                time.sleep(TICK)
        self._board.state("stopped")
        return False

    def _start(self) -> None:
        settings = self._settings
        catalog = Catalog(settings.catalog)
        self._stack.callback(catalog.close)
        self._store = Store(settings.generations)
        self._sample = open_sample(settings.state / "sample.arrow", settings.sample)
        writers, write_dead_letters = sinks(settings), dead_letter_writer(settings)
        self._links = BrokerLinks(settings, self._board)
        self._streams = [
            _Stream(
                source,
                Pipeline(
                    source,
                    self._reference,
                    self._newest,
                    writers,
                    write_dead_letters,
                    self._links.publisher(source),
                    read_schema(source.schema),
                    self._sample,
                ),
            )
            for source in settings.inputs
        ]
        # Before any sweep: batches that earlier runs began still need their generations.
        known = [self._batch_log(stream) for stream in self._streams if self._metadata(stream).exists()]
        self._sweep_sinks()
        last = max(
            (batches.last_generation for batches in all_batch_logs(self._settings.state / "batches")),
            default=-1,
        )
        sample = tuple if self._sample is None else self._sample.messages
        sharding, folder = settings.shards.sharding, self._working_directory()
        self._publisher = Publisher(catalog, self._store, folder, last, sample, sharding)
        self._stack.callback(self._publisher.close)
        self._generation = -1
        newest = self._first_generation = self._newest()
        for batches in known:
            self._replace_lost_generations(batches, newest)
        self._spark = self._session()
        self._stack.callback(self._links.start(catalog, self._shown, sample).close)
        self._warm_up = warm_up(self._spark, self._streams[0].pipeline, newest)

    def _report_ready(self) -> None:
        """The job is ready once each source has been read, or has failed."""
        if not self._is_ready and all(map(_is_polled, self._streams)):
            self._is_ready = True
            self._board.state("running")

    def _make_class_archive(self) -> None:
        """Have it made when nothing else waits: after the start."""
        archive = self._archive
        if archive is None or not self._is_ready or self._warm_up is None or self._warm_up.is_alive():
            return
        if archive.is_missing:
            java: Any = self._spark._jvm
            archive.make(java.java.lang.System.getProperty("java.class.path"))
        archive.poll()

    def _save_sample(self, every: float = 0.0) -> None:
        """Write the sample, if the last time was so many seconds ago. It may be lost: it is an estimate."""
        now = time.monotonic()
        if self._sample is None or now < self._sample_saved + every:
            return
        self._sample_saved = now
        try:
            self._sample.save()
        except TamisError as error:
            log.warning("the sample of messages could not be saved: %s", error)

    def _working_directory(self) -> Path:
        """Where the index is built: in the store itself if it is a directory of this host."""
        return self._store.directory or self._settings.state / "index"

    def _newest(self) -> int:
        """Publish the catalog's changes; the newest generation, or the last known one if that fails."""
        with self._publishing:
            try:
                number = self._publisher.refresh()
            except TamisError as error:
                if self._generation < 0:
                    raise
                log.warning("refresh failed; still using generation %d: %s", self._generation, error)
                self._board.failed(None, error)
                return self._generation
            if number != self._generation:
                self._generation = number
                self._sweep(number)
            self._board.generation(number, self._publisher.subscriptions)
            return number

    def _shown(self) -> Shown | None:
        """What the newest generation shows; the catalog's changes are published first."""
        self._newest()
        with self._publishing:
            return self._publisher.shown

    def _replace_lost_generations(self, batches: BatchLog, newest: int) -> None:
        """Assign the newest generation to unfinished batches whose own is lost: else they never finish."""
        for record in batches.unfinished():
            if not self._publisher.has(record.generation):
                log.warning("batch %d: its generation is lost; using generation %d", record.batch, newest)
                batches.replace_generation(record.batch, newest)

    def _recover_generations(self, stream: _Stream, batches: BatchLog) -> None:
        """After a failure: republish if the newest generation is damaged or lost, and replace lost ones."""
        with self._publishing:
            if stream.damaged:
                self._publisher.remove_damaged()
                stream.damaged = False
            elif not self._publisher.has(self._generation):
                self._publisher.forget()
        self._replace_lost_generations(batches, self._newest())

    def _sweep(self, number: int) -> None:
        """Remove generations that no unfinished batch needs."""
        needed = {number, number - 1}
        if self._warm_up is None or self._warm_up.is_alive():
            needed.add(self._first_generation)
        for stream in self._streams:
            if stream.batches is not None:
                needed.update(record.generation for record in stream.batches.unfinished())
        with suppress(TamisError):
            self._publisher.sweep(needed)

    def _sweep_sinks(self) -> None:
        """Remove files of batches that will never be published."""
        known = [stream.batches for stream in self._streams if stream.batches is not None]
        unfinished = [batches.batch_id(record.batch) for batches in known for record in batches.unfinished()]
        with suppress(TamisError):
            sweep(self._settings, unfinished)

    def _reference(self, number: int) -> Generation:
        settings = self._settings
        return Generation(
            settings.generations,
            number,
            stored=True,
            cache=settings.cache,
            open_bytes=settings.shards.open,
        )

    def _supervise(self, stream: _Stream) -> None:
        """Start a source's query when it is due; detect failure and recovery."""
        query, now = stream.query, time.monotonic()
        if query is not None and not query.isActive:
            stream.query = None
            self._failed(
                stream, query.exception() or JobError("query-ended", "the query ended without an error")
            )
        elif query is not None and stream.failing and query.status["message"].startswith(IDLE):
            stream.failing = False
            self._board.recovered(stream.source.name)
        elif query is None and now >= stream.due:
            try:
                if stream.failing and stream.batches is not None:
                    self._recover_generations(stream, stream.batches)
                stream.query = self._query(stream)
            except (PySparkException, TamisError, OSError) as error:
                self._failed(stream, error)

    def _update_lag(self, stream: _Stream) -> None:
        """Spark reports the progress of a batch only after the batch, so its report has an older lag."""
        now = time.monotonic()
        if stream.query is not None and now >= stream.lag_due:
            stream.lag_due = now + LAG_SECONDS
            lag = _lag(stream.query)
            if lag is not None:
                self._board.lag(stream.source.name, lag)

    def _failed(self, stream: _Stream, error: Exception) -> None:
        """Report a failure, and schedule a retry."""
        cause = stream.error or self._cause(stream, error)
        stream.error = None
        stream.failing = True
        stream.damaged = stream.damaged or is_lost(cause)
        log.error("source %s: %s; retrying in %.0f s", stream.source.name, cause, stream.pause)
        stream.due = time.monotonic() + stream.pause
        stream.pause = min(stream.pause * 2, LONGEST_PAUSE)
        self._board.failed(stream.source.name, cause)

    def _cause(self, stream: _Stream, error: Exception) -> TamisError:
        """The cause of a failure, in one line."""
        cause = root_cause(error, stream.source.location)
        if cause.code == UNKNOWN:
            log.error("source %s: %s", stream.source.name, error)
        return cause

    def _query(self, stream: _Stream) -> StreamingQuery:
        settings, source = self._settings, stream.source
        checkpoint = settings.checkpoint(source.name)
        writer = self._frame(source).writeStream.queryName(f"{settings.state}: {source.name}")
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(processingTime=f"{int(settings.interval * 1000)} milliseconds")
        return writer.foreachBatch(lambda rows, number: self._batch(stream, rows, number)).start()

    def _frame(self, source: Input) -> DataFrame:
        if isinstance(source, ArrivalsSource):
            return read_arrivals(self._spark, source)
        if isinstance(source, DirectorySource):
            return read_inbox(self._spark, source)
        return read_kafka(self._spark, source)

    def _batch(self, stream: _Stream, rows: DataFrame, number: int) -> None:
        """Process one batch of a source; called by Spark."""
        with stream.working:
            if self._stopping.is_set():
                # It has not begun; the next run processes it.
                raise JobError("stopping", "the job is stopping")
            self._links.wait_for_room(stream.source, self._stopping.is_set)
            if self._stopping.is_set():
                raise JobError("stopping", "the job is stopping")
            self._board.batch_started(stream.source.name)
            started, clock = datetime.now(UTC), time.monotonic()
            try:
                plan = plan_hash(self._settings.checkpoint(stream.source.name), number)
                record, counts = stream.pipeline.run(rows, number, plan, self._batch_log(stream))
            except Exception as error:
                stream.error = self._cause(stream, error)
                # Without the traceback: the supervisor reports it in one line.
                raise stream.error from None
            stream.pause = FIRST_PAUSE
            stream.failing = False
            self._links.count(stream.source, counts.unmatched)
            report = BatchReport(
                source=stream.source.name,
                batch=number,
                generation=record.generation,
                unmatched=counts.unmatched,
                **asdict(counts),
                started=started,
                seconds=time.monotonic() - clock,
                lag=_lag(stream.query),
            )
            self._board.report(report)

    def _batch_log(self, stream: _Stream) -> BatchLog:
        """The batch log of a source, by the id of its Spark checkpoint."""
        if stream.batches is None:
            checkpoint = json.loads(self._metadata(stream).read_text())["id"]
            stream.batches = BatchLog(self._settings.state / "batches" / stream.source.name, checkpoint)
        return stream.batches

    def _metadata(self, stream: _Stream) -> Path:
        return self._settings.checkpoint(stream.source.name) / "metadata"

    def _stop(self) -> None:
        """Wait for running batches, then stop the queries."""
        self._board.state("stopping")
        self._stopping.set()
        for stream in self._streams:
            with stream.working:
                pass
            # Not while holding the lock: a new batch would wait for it, and Spark's stop for the batch.
            if stream.query is not None:
                stream.query.stop()
        self._board.state("stopped")


def _is_polled(stream: _Stream) -> bool:
    """Whether a source has been read once, or has failed."""
    if stream.query is None:
        return stream.failing
    status = stream.query.status
    return bool(status["isDataAvailable"]) or status["message"].startswith(IDLE)


def _lag(query: StreamingQuery | None) -> dict[str, int] | None:
    """How far a source is behind, by Spark's last progress report."""
    progress: Any = None if query is None else query.lastProgress
    if not progress or not progress["sources"]:
        return None
    source = progress["sources"][0]
    behind = (source.get("metrics") or {}).get("maxOffsetsBehindLatest")
    if behind is not None:
        return {"messages": int(behind)}
    try:
        end, latest = _offset(source["endOffset"]), _offset(source["latestOffset"])
        return {"files": latest["file"] - end["file"]}
    except (KeyError, TypeError, ValueError):
        return None


def _offset(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
