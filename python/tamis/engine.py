"""The only importer of the kernel: converts between its plain values and the public types."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from tamis import _kernel
from tamis.errors import GenerationError, MatchError, ReadError
from tamis.model.data import Data
from tamis.model.dtd import Dtd
from tamis.model.envelope_value import Envelope
from tamis.model.explanation import Explanation
from tamis.model.matching import (
    CACHE_BYTES,
    AttachedData,
    Batch,
    CacheBytes,
    Decomposition,
    Found,
    Generation,
    Limits,
    Line,
    Output,
    Query,
    QueryWarning,
    Stats,
    Transformed,
    Values,
    Weakening,
)
from tamis.model.message_batch import Messages, arrow_messages, envelope_fields, with_envelopes
from tamis.model.target_rows import Rows, with_target_numbers
from tamis.schema import Schema as Schema
from tamis.shard_methods import ShardMethods
from tamis.stored_data import StoredData, open_data

if TYPE_CHECKING:
    # Arrow takes 0.2 s to import: functions import it when they need it.
    import pyarrow as pa

__version__: str = _kernel.__version__

Namespaces = Mapping[str, str]
"""Prefix → namespace URI."""
Pairs: TypeAlias = "Sequence[Sequence[int]] | pa.Array[Any]"

ERROR_COLUMNS = ("code", "reason", "offset", "line", "column", "value", "limit")
"""Why a message was refused, as columns of a result."""

_DEFAULT_LIMITS = Limits()


def check(text: str, namespaces: Namespaces | None = None) -> Query:
    """Parse a query; `QueryError` if it is refused."""
    id_, canonical, warnings, data = _kernel.check(text, _dict(namespaces))
    return Query(id_, canonical, tuple(QueryWarning(*warning) for warning in warnings), frozenset(data))


def check_data(text: str, records: Mapping[str, int], namespaces: Namespaces | None = None) -> None:
    """`QueryError` if local data cannot serve a query: `records` of each data set that it may name.

    `unknown-data`, `no-document`, or `scan-limit` if it has no equality that could find records.
    """
    _kernel.check_data(text, _dict(namespaces), list(records.items()))


def read_batch(messages: Messages, limits: Limits = _DEFAULT_LIMITS) -> Batch:
    """Parse messages into tables. A refused message is a row of `errors`; others are not affected."""
    return Batch(*(_record_batch(table) for table in _kernel.read_batch(arrow_messages(messages), limits)))


def read_values(messages: Messages, limits: Limits = _DEFAULT_LIMITS) -> Values:
    """Parse messages into a value table: a row per element, attribute and text node, for joins.

    A refused message is a row of `errors`, also one whose rows would exceed `limits.outputs` bytes.
    """
    import pyarrow as pa

    batches, errors = _kernel.read_values(arrow_messages(messages), limits)
    return Values(pa.Table.from_batches([_record_batch(rows) for rows in batches]), _record_batch(errors))


def read_all(messages: Messages, limits: Limits = _DEFAULT_LIMITS) -> int:
    """Parse messages and return the number of elements: for measuring the reader alone."""
    return _kernel.read_all(arrow_messages(messages), limits)


def read_dtd(
    text: bytes, resolve: Callable[[str], bytes | None] | None = None, *, limits: Limits = _DEFAULT_LIMITS
) -> Dtd:
    """Read a DTD; `ReadError` if it is malformed.

    `resolve` gives the text of an external parameter entity by its system identifier. Nothing is fetched.
    """
    return Dtd.from_json(_kernel.read_dtd(text, limits, resolve))


def detect_encoding(head: bytes) -> tuple[str, int]:
    """The label of a text's encoding by its first bytes, and the length of its byte order mark.

    `ReadError` if the encoding is not supported.
    """
    return _kernel.detect_encoding(head)


def canonical_label(label: str) -> str | None:
    """The one label of an encoding that has several; None if it is not supported."""
    return _kernel.canonical_label(label)


Transcoder: TypeAlias = _kernel.Transcoder
"""Decodes a text in chunks: `utf8(raw, is_last)`; `consume(count)` maps lengths back to bytes of the text."""


def decompose(queries: Iterable[str], namespaces: Namespaces | None = None) -> Decomposition:
    """Decompose queries as the planner does. A refused query is a row of `errors`."""
    tables = _kernel.decompose(list(queries), _dict(namespaces))
    return Decomposition(*(_record_batch(table) for table in tables))


def weaken(query: str, namespaces: Namespaces | None = None) -> Weakening:
    """The linear paths that messages need to match a query, to route by; `QueryError` if it is refused."""
    text, alternatives = _kernel.weaken(query, _dict(namespaces))
    return Weakening(text, tuple(tuple(Line(*line) for line in lines) for lines in alternatives))


class _Saved(NamedTuple):
    """The directory and number of the last snapshot, and the index's generation at that time."""

    directory: Path
    number: int
    generation: int


class Index(ShardMethods):
    """A set of standing queries. Each has a target: a 64-bit number chosen by the caller.

    Threads match concurrently, each with its own caches. Changes are serialised and visible to the next
    match. Fork-safe.
    """

    def __init__(self, *, cache_bytes: int = CACHE_BYTES) -> None:
        """An empty index. `cache_bytes` bounds the caches of one matching thread; 0: no caches."""
        self._attach(_kernel.Index(cache_bytes), cache_bytes, None)

    @classmethod
    def _for_large_inputs(cls, *, cache_bytes: int = CACHE_BYTES) -> Self:
        """For tests: an index that always takes the methods for large messages and many queries."""
        index = cls.__new__(cls)
        index._attach(_kernel.Index.for_large_inputs(cache_bytes), cache_bytes, None)
        return index

    def _attach(self, kernel: _kernel.Index, cache_bytes: int, saved: Path | None) -> None:
        self._kernel = kernel
        self._cache_bytes = cache_bytes
        self._stored: dict[tuple[str, str], StoredData] = {}
        self._write_lock = threading.Lock()
        self._saved = None if saved is None else _Saved(saved, kernel.generation, kernel.generation)
        _indexes.add(self)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        generation: int | None = None,
        *,
        cache_bytes: int = CACHE_BYTES,
        beside: "Index | None" = None,
        shards: Sequence[int] | None = None,
        open_bytes: int | None = None,
    ) -> Self:
        """Open a snapshot. Its files are verified and mapped, so that processes share one copy.

        Of several shards, opens those in `shards` if given; a message that visits another is refused
        (`shard-closed`). A thread keeps scratch space for `open_bytes` of segments, used last.
        """
        path = Path(directory).absolute()
        index = cls.__new__(cls)
        other = None if beside is None else beside._kernel
        wanted = None if shards is None else list(shards)
        opened = _kernel.Index.open(path, generation, cache_bytes, other, wanted, open_bytes)
        index._attach(opened, cache_bytes, path)
        return index

    @property
    def damaged(self) -> bool:
        """Whether a mapped file turned out to be damaged, or a call panicked: open the index again."""
        return self._kernel.damaged

    def advance(self, generation: int, *, shards: Sequence[int] | None = None) -> None:
        """Switch to another generation of the same directory, or to other shards of this one.

        Shared segments stay mapped, and their caches stay warm.
        """
        saved = self._saved
        if saved is None or self._current().generation != saved.generation:
            raise GenerationError(
                "not-saved", "the index has unsaved changes: only an index as it was opened can advance"
            )
        with self._write_lock:
            self._kernel.advance(saved.directory, generation, None if shards is None else list(shards))
        self._saved = _Saved(saved.directory, generation, generation)

    def snapshot(self, directory: str | os.PathLike[str]) -> int:
        """Write the index to a directory, reusing its segment files; the number of the generation."""
        path = Path(directory).absolute()
        self._saved = _Saved(path, *self._current().snapshot(path))
        return self._saved.number

    @property
    def saved(self) -> Generation:
        """The reference that other processes open this index by; an error if it has unsaved changes."""
        saved = self._saved
        if saved is None or self._current().generation != saved.generation:
            raise GenerationError("not-saved", "the index has unsaved changes: take a snapshot first")
        stored = self._stored.items()
        data = tuple(AttachedData(*place, str(one.directory), one.manifest) for place, one in stored)
        return Generation(str(saved.directory), saved.number, self._cache_bytes, data=data)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by reference: other processes map the same files."""
        return (_reopen, (type(self), self.saved))

    def insert(
        self, target: int, query: str, *, tenant: str = "", namespaces: Namespaces | None = None
    ) -> str:
        """Add or replace a target; the id of its query."""
        with self._write_lock:
            return self._kernel.insert(target, query, tenant, _dict(namespaces))

    def remove(self, target: int) -> bool:
        """Remove a target; False if there is none."""
        with self._write_lock:
            return self._kernel.remove(target)

    def load(
        self, table: Rows, *, namespaces: Namespaces | Sequence[Namespaces] | None = None
    ) -> "pa.RecordBatch":
        """Add or replace many targets: columns `target`, `query` and, optionally, `tenant` and `prefixes`.

        `namespaces` are the prefixes of all queries. If they differ, it is a list of prefix maps, and the
        column `prefixes` has the place of each query's own in it. Returns refused rows: `row` and the error.
        """
        maps = [namespaces] if namespaces is None or isinstance(namespaces, Mapping) else namespaces
        rows = with_target_numbers(table)
        with self._write_lock:
            return _record_batch(self._kernel.load(rows, [_dict(prefixes) for prefixes in maps]))

    def load_registered(self, table: Rows, *, namespaces: Sequence[Namespaces]) -> "pa.RecordBatch":
        """As `load`, for queries that were checked when they were registered: it needs no local data."""
        rows = with_target_numbers(table)
        with self._write_lock:
            return _record_batch(self._kernel.load_registered(rows, [_dict(some) for some in namespaces]))

    def set_sample(self, messages: Messages, tenants: Sequence[str]) -> None:
        """Replace the sample of messages, by which later segments choose access tests; a tenant for each."""
        self._kernel.set_sample(arrow_messages(messages), list(tenants))

    def attach(
        self, name: str, data: Data | StoredData, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> None:
        """Attach local data under its name in queries of a tenant, or replace it.

        `ReadError` if a record is refused. Snapshots do not hold it: attach it to an index that is opened.
        `saved` names data in files, so that other processes attach it.
        """
        self._stored.pop((tenant, name), None)
        if isinstance(data, StoredData):
            read = data.kernel
            self._stored[tenant, name] = data
        else:
            read = _kernel.Data(arrow_messages(data.records), limits)
        with self._write_lock:
            self._kernel.attach(tenant, name, read)

    def replace_data(self, data: Mapping[tuple[str, str], StoredData]) -> None:
        """Attach these data sets, by tenant and name, and no others. Queries stay as they are."""
        given = [(tenant, name, stored.kernel) for (tenant, name), stored in data.items()]
        with self._write_lock:
            self._kernel.replace_data(given)
        self._stored = dict(data)

    def merge(self) -> None:
        """Merge all segments into one, and choose access tests by the current sample of messages."""
        with self._write_lock:
            self._kernel.merge()

    def refile(self, least_share: float) -> bool:
        """File the segment that gains most by the sample again, if it saves this share of candidates."""
        with self._write_lock:
            return self._kernel.refile(least_share)

    def match(
        self,
        message: bytes,
        *,
        envelope: Envelope | None = None,
        tenant: str = "",
        limits: Limits = _DEFAULT_LIMITS,
    ) -> list[int]:
        """The targets whose queries match, ascending; `ReadError` for a malformed message.

        `MatchError` if queries exceed the work limit or miss their data; it names them and what matches.
        """
        targets, failed, cause = self._current().match(message, envelope_fields(envelope), tenant, limits)
        if failed:
            raise MatchError(targets, failed, limits.work, cause)
        return targets

    def match_batch(
        self, messages: Messages, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> "pa.RecordBatch":
        """Match messages, one row each: `queries`, `failed`, the work, `skipped_entities` and the error.

        `queries` are query numbers of this generation, unordered; `targets` expands them. `failed` are
        queries that exceeded the work limit: whether they match is open. `with_envelopes` adds envelopes.

        The work by stage: `candidates` were tested; of these, `settled` were decided from what the automaton
        found at the elements, and `verified` by evaluating them on the message, which took `steps` (see
        `Limits.work`). `looked_up`: how often elements were looked up by value for that. `probes`: how
        many values were looked up in local data, and `records`: how many records the message met.
        `uncached`: 1 if the automaton's cache had no room for the message.

        `skipped_entities` counts references that were left out (`Limits.skip_unread_entities`). The columns
        of the error (`ERROR_COLUMNS`) are null for a good message.
        """
        return _record_batch(self._current().match_batch(arrow_messages(messages), tenant, limits))

    def match_pairs(
        self, messages: Messages, pairs: Pairs, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> "pa.RecordBatch":
        """Verify given pairs: for each message a list of targets, whose queries are evaluated on it.

        The columns are those of `match_batch`. Targets that the index or tenant does not have match nothing.
        """
        import pyarrow as pa

        lists = pa.array(pairs, pa.large_list(pa.uint64())) if isinstance(pairs, Sequence) else pairs
        return _record_batch(self._current().match_pairs(arrow_messages(messages), lists, tenant, limits))

    def match_elements(
        self, messages: Messages, *, limit: int = 1000, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> Found:
        """Match messages, one row for each node that a matching query selects.

        These are the nodes of its paths outside `not()`, in document order, at most `limit` of them
        for one message and query; a limit of 1 gives the first. Rows have `message`, `query`, `node`,
        `kind` (element, attribute, text or document), `attribute` (its place among the element's),
        `span_start` and `span_end` (bytes in the message's UTF-8 form).
        """
        found = self._current().match_elements(arrow_messages(messages), tenant, limits, limit)
        return self._selection(found)

    def match_bindings(
        self, messages: Messages, *, limit: int = 1000, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> Found:
        """Match messages, one row for each binding tuple that leads to such a node.

        Rows have `message`, `query` and `nodes`, one node number per step of the path, at most `limit`
        for one message and query.
        """
        found = self._current().match_bindings(arrow_messages(messages), tenant, limits, limit)
        return self._selection(found)

    def transform(
        self,
        message: bytes,
        *,
        envelope: Envelope | None = None,
        tenant: str = "",
        limits: Limits = _DEFAULT_LIMITS,
        schema: Schema | None = None,
    ) -> list[Output]:
        """The output of a message for each matching target.

        `ReadError` if the message is malformed. A transformation that exceeds a limit fails alone.
        """
        messages = with_envelopes([message], [envelope])
        batch = self.transform_batch(messages, tenant=tenant, limits=limits, schema=schema)
        (matched,) = batch.matches.select(ERROR_COLUMNS).to_pylist()
        if matched["code"] is not None:
            raise ReadError(**matched)
        matching: Any = self.targets(batch.matches).to_pylist()
        outputs = {target: Output(target, message) for target in matching[0]}
        targets_of_rows: Any = self.targets(batch.made).to_pylist()
        for row, targets in zip(batch.made.to_pylist(), targets_of_rows, strict=True):
            payload = None if row["output"] is None else batch.outputs[row["output"]].as_py()
            for target in targets:
                outputs[target] = Output(target, payload, row["code"], row["reason"])
        return list(outputs.values())

    def transform_batch(
        self,
        messages: Messages,
        *,
        tenant: str = "",
        limits: Limits = _DEFAULT_LIMITS,
        schema: Schema | None = None,
    ) -> Transformed:
        """Match messages and run the matching transformations.

        A query that exceeds a limit, also a filter that exceeds the work limit, is a row of `made` with the
        reason.
        """
        kernel = None if schema is None else schema._kernel
        tables = self._current().transform_batch(arrow_messages(messages), tenant, limits, kernel)
        matches, made, outputs = (_record_batch(table) for table in tables)
        return Transformed(matches, made, outputs.column("output"))

    @staticmethod
    def _selection(tables: tuple[Any, Any]) -> Found:
        return Found(*(_record_batch(table) for table in tables))

    def targets(self, matches: "pa.RecordBatch") -> "pa.Array[Any]":
        """For each row of a result, the targets of its queries, ascending."""
        import pyarrow as pa

        if "queries" in matches.schema.names:
            return self._targets(matches, matches.column("queries"))
        # One query a row: lists of length one.
        ends = pa.array(range(matches.num_rows + 1), pa.int64())
        return self._targets(matches, pa.LargeListArray.from_arrays(ends, matches.column("query")))

    def failed_targets(self, matches: "pa.RecordBatch") -> "pa.Array[Any]":
        """For each row of `match_batch`, the targets of the queries that failed, ascending."""
        return self._targets(matches, matches.column("failed"))

    def _targets(self, matches: "pa.RecordBatch", queries: Any) -> "pa.Array[Any]":
        import pyarrow as pa

        generation = int((matches.schema.metadata or {})[b"generation"])
        targets: pa.Array[Any] = pa.array(self._kernel.targets(queries, generation))
        return targets

    def explain(
        self,
        message: bytes,
        query: str,
        *,
        envelope: Envelope | None = None,
        tenant: str = "",
        namespaces: Namespaces | None = None,
        limits: Limits = _DEFAULT_LIMITS,
        schema: Schema | None = None,
    ) -> Explanation:
        """Why a query matches a message or not, and its access test if the index contains it.

        For a matching transformation also its operators, and which of them it shares.
        """
        kernel = self._current()
        graph = None if schema is None else schema._kernel
        given = (message, envelope_fields(envelope), query, tenant, _dict(namespaces), limits, graph)
        return Explanation.of(*kernel.explain(*given))

    @property
    def generation(self) -> int:
        """The number of the newest generation; increases with every visible change."""
        return self._current().generation

    def stats(self) -> Stats:
        """Statistics of the index."""
        *counts, caches = self._current().stats()
        return Stats(*[*counts, CacheBytes(*caches)])

    def _current(self) -> _kernel.Index:
        """The kernel's index, after committing pending changes."""
        if self._kernel.changed:
            with self._write_lock:
                self._kernel.commit()
        return self._kernel


def _reopen(kind: type[Index], saved: Generation) -> Index:
    index = kind.open(saved.directory, saved.number, cache_bytes=saved.cache_bytes)
    index.replace_data({(one.tenant, one.name): open_data(one.directory, one.manifest) for one in saved.data})
    return index


_indexes: "weakref.WeakSet[Index]" = weakref.WeakSet()


def _after_fork() -> None:
    """Replace locks: one that another thread held during the fork would never be released in the child."""
    for index in _indexes:
        index._write_lock = threading.Lock()
        index._kernel.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _dict(namespaces: Namespaces | None) -> dict[str, str] | None:
    return None if namespaces is None else dict(namespaces)


def _record_batch(table: Any) -> "pa.RecordBatch":
    import pyarrow as pa

    return pa.record_batch(table)
