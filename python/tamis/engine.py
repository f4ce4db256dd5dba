"""The one importer of the kernel: its plain values in, the public types out."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import pyarrow as pa

from tamis import _kernel
from tamis.errors import IndexError, ReadError
from tamis.model.dtd import Dtd
from tamis.model.explanation import Explanation
from tamis.model.matching import (
    CACHE_BYTES,
    Batch,
    Decomposition,
    Found,
    Generation,
    Limits,
    Output,
    Query,
    Stats,
    Transformed,
)

__version__: str = _kernel.__version__

Messages: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[bytes | str | None]"
"""Messages of a batch: anything that speaks Arrow and holds bytes or strings, or Python's own."""

Namespaces = Mapping[str, str]
"""Prefix → namespace URI."""

_DEFAULT_LIMITS = Limits()


def check(text: str, namespaces: Namespaces | None = None) -> Query:
    """The query that a text stands for; `QueryError` if it is none."""
    return Query(*_kernel.check(text, _dict(namespaces)))


def read_batch(messages: Messages, limits: Limits = _DEFAULT_LIMITS) -> Batch:
    """Read messages into tables; a refused message is a row of `errors` and disturbs no other."""
    return Batch(*(pa.record_batch(table) for table in _kernel.read_batch(_arrow(messages), limits)))


def read_all(messages: Messages, limits: Limits = _DEFAULT_LIMITS) -> int:
    """Read messages and forget them; the number of elements. To measure reading alone."""
    return _kernel.read_all(_arrow(messages), limits)


def read_dtd(
    text: bytes, resolve: Callable[[str], bytes | None] | None = None, *, limits: Limits = _DEFAULT_LIMITS
) -> Dtd:
    """Read a DTD; `ReadError` if it is malformed.

    External parameter entities are asked from `resolve` by their system identifier: nothing is fetched.
    """
    return Dtd.from_json(_kernel.read_dtd(text, limits, resolve))


def decompose(queries: Iterable[str], namespaces: Namespaces | None = None) -> Decomposition:
    """Queries taken apart as the planner uses them; a refused one is a row of `errors`."""
    tables = _kernel.decompose(list(queries), _dict(namespaces))
    return Decomposition(*(pa.record_batch(table) for table in tables))


_Elements: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
_Graph: TypeAlias = tuple[_Elements, tuple[str, ...]]
"""Elements with what they may contain, and those where messages may begin."""


class Schema:
    """What a DTD says that transforming can use. Make one per DTD: plans are kept by schema.

    A message that does not conform, because its root or an element in another is not what the DTD allows,
    is transformed as without.
    """

    def __init__(self, dtd: Dtd) -> None:
        """The element graph of a DTD."""
        self._elements = tuple((name, tuple(element.children)) for name, element in dtd.elements.items())
        self._roots = dtd.roots
        self._kernel = _graph(self._elements, self._roots)

    def __getstate__(self) -> _Graph:
        """Pickle as the graph: in a process, equal graphs are one schema to the plans."""
        return self._elements, self._roots

    def __setstate__(self, graph: _Graph) -> None:
        """Unpickle."""
        self._elements, self._roots = graph
        self._kernel = _graph(*graph)


@lru_cache(maxsize=16)
def _graph(elements: _Elements, roots: tuple[str, ...]) -> _kernel.Schema:
    return _kernel.Schema([(name, list(children)) for name, children in elements], list(roots))


class _Saved(NamedTuple):
    """Where an index was last saved or opened, its number there, and its generation then."""

    directory: Path
    number: int
    generation: int


class Index:
    """A set of standing queries, each under a target: a number of the caller's, 64 bits.

    Several threads may match at once, each with caches of its own; changes are made one at a time
    and are seen by the next match. It is safe to fork: the child matches on.
    """

    def __init__(self, *, cache_bytes: int = CACHE_BYTES) -> None:
        """An empty index. `cache_bytes` bounds the caches of one matching thread; 0 is without."""
        self._adopt(_kernel.Index(cache_bytes), cache_bytes, None)

    @classmethod
    def _for_large_inputs(cls, *, cache_bytes: int = CACHE_BYTES) -> Self:
        """For tests: an index that always takes the methods for large messages and many queries."""
        index = cls.__new__(cls)
        index._adopt(_kernel.Index.for_large_inputs(cache_bytes), cache_bytes, None)
        return index

    def _adopt(self, kernel: _kernel.Index, cache_bytes: int, saved: Path | None) -> None:
        self._kernel = kernel
        self._cache_bytes = cache_bytes
        self._changing = threading.Lock()
        self._saved = None if saved is None else _Saved(saved, kernel.generation, kernel.generation)
        _indexes.add(self)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        generation: int | None = None,
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """The index of a snapshot: its files are mapped, so that processes share one copy.

        Without `generation` it is the newest. What is changed is this process's own, until a snapshot.
        """
        path = Path(directory).absolute()
        index = cls.__new__(cls)
        kernel = _kernel.Index.open(path, generation, cache_bytes)
        index._adopt(kernel, cache_bytes, path)
        return index

    def advance(self, generation: int) -> None:
        """Go over to another generation of the snapshot that this was opened from.

        Segments that both have stay mapped, and what caches know of them stays known: matching is not cold.
        """
        saved = self._saved
        if saved is None or self._seen().generation != saved.generation:
            raise IndexError("not-saved", "only an index as it was opened can go over to another generation")
        with self._changing:
            self._kernel.advance(saved.directory, generation)
        self._saved = _Saved(saved.directory, generation, generation)

    def snapshot(self, directory: str | os.PathLike[str]) -> int:
        """Write the index to files; the number of the generation that `open` finds there.

        A snapshot takes over what earlier ones wrote to the same directory, and writes what is new.
        """
        path = Path(directory).absolute()
        self._saved = _Saved(path, *self._seen().snapshot(path))
        return self._saved.number

    @property
    def saved(self) -> Generation:
        """Where other processes find this index as it is now; `IndexError` if a snapshot has to be taken."""
        saved = self._saved
        if saved is None or self._seen().generation != saved.generation:
            raise IndexError("not-saved", "other processes know an index by its files: take a snapshot first")
        return Generation(str(saved.directory), saved.number, self._cache_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by reference: directory and generation, so that other processes map the same files."""
        return (_reopened, (type(self), self.saved))

    def insert(
        self, target: int, query: str, *, tenant: str = "", namespaces: Namespaces | None = None
    ) -> str:
        """Register a target, anew if it is there; the id of its query."""
        with self._changing:
            return self._kernel.insert(target, query, tenant, _dict(namespaces))

    def remove(self, target: int) -> bool:
        """Remove a target; whether it was there."""
        with self._changing:
            return self._kernel.remove(target)

    def load(
        self, table: pa.Table | pa.RecordBatch, *, namespaces: Namespaces | None = None
    ) -> pa.RecordBatch:
        """Register many targets at once: columns `target`, `query` and, if there are any, `tenant`.

        The refused rows come back as `row`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`;
        the others are in.
        """
        if "target" in table.schema.names:
            place = table.schema.get_field_index("target")
            table = table.cast(table.schema.set(place, pa.field("target", pa.uint64())))
        with self._changing:
            return pa.record_batch(self._kernel.load(table, _dict(namespaces)))

    def merge(self) -> None:
        """Make one segment of all, filed anew by what messages have been like."""
        with self._changing:
            self._kernel.merge()

    def match(self, message: bytes, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS) -> list[int]:
        """The targets whose queries match a message, ascending; `ReadError` if it is malformed."""
        return self._seen().match(message, tenant, limits)

    def match_batch(
        self, messages: Messages, *, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> pa.RecordBatch:
        """Match messages, one row each: `queries`, `candidates`, and the error if it is malformed.

        `queries` are numbers of this generation's queries, in no order; `targets` expands them. The
        error's columns are `code`, `reason`, `offset`, `line`, `column`, `value` and `limit`; all of
        them are null for a good message.
        """
        return pa.record_batch(self._seen().match_batch(_arrow(messages), tenant, limits))

    def match_elements(
        self, messages: Messages, *, limit: int = 1000, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> Found:
        """Match messages, one row for each node that a matching query selects.

        These are the nodes of its paths outside `not()`, in document order, at most `limit` of them
        for one message and query; a limit of 1 gives the first. Rows have `message`, `query`, `node`,
        `kind` (element, attribute, text or document), `attribute` (its place among the element's),
        `span_start` and `span_end` (bytes in the message's UTF-8 form).
        """
        return self._found(self._seen().match_elements(_arrow(messages), tenant, limits, limit))

    def match_bindings(
        self, messages: Messages, *, limit: int = 1000, tenant: str = "", limits: Limits = _DEFAULT_LIMITS
    ) -> Found:
        """Match messages, one row for each way that leads to such a node.

        Rows have `message`, `query` and `nodes`, one node number per step of the path, at most `limit`
        rows for one message and query.
        """
        return self._found(self._seen().match_bindings(_arrow(messages), tenant, limits, limit))

    def transform(
        self,
        message: bytes,
        *,
        tenant: str = "",
        limits: Limits = _DEFAULT_LIMITS,
        schema: Schema | None = None,
    ) -> list[Output]:
        """What a message becomes for each target whose query matches it, by target.

        `ReadError` if the message is malformed. A transformation that passes a limit fails alone.
        """
        batch = self.transform_batch([message], tenant=tenant, limits=limits, schema=schema)
        (matched,) = batch.matches.drop_columns(["queries", "candidates"]).to_pylist()
        if matched["code"] is not None:
            raise ReadError(**matched)
        matching: Any = self.targets(batch.matches).to_pylist()
        outputs = {target: Output(target, message) for target in matching[0]}
        concerned: Any = self.targets(batch.made).to_pylist()
        for row, targets in zip(batch.made.to_pylist(), concerned, strict=True):
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
        """Match messages, and make of each what the transformations that match it ask for."""
        kernel = None if schema is None else schema._kernel
        tables = self._seen().transform_batch(_arrow(messages), tenant, limits, kernel)
        matches, made, outputs = (pa.record_batch(table) for table in tables)
        return Transformed(matches, made, outputs.column("output"))

    @staticmethod
    def _found(tables: tuple[Any, Any]) -> Found:
        return Found(*(pa.record_batch(table) for table in tables))

    def targets(self, matches: pa.RecordBatch) -> "pa.Array[Any]":
        """For each row of a match, the targets of its queries, or of its query, ascending."""
        generation = int((matches.schema.metadata or {})[b"generation"])
        if "queries" in matches.schema.names:
            queries = matches.column("queries")
        else:
            # One query a row: lists of one.
            ends = pa.array(range(matches.num_rows + 1), pa.int64())
            queries = pa.LargeListArray.from_arrays(ends, matches.column("query"))
        targets: pa.Array[Any] = pa.array(self._kernel.targets(queries, generation))
        return targets

    def explain(
        self,
        message: bytes,
        query: str,
        *,
        tenant: str = "",
        namespaces: Namespaces | None = None,
        limits: Limits = _DEFAULT_LIMITS,
        schema: Schema | None = None,
    ) -> Explanation:
        """Why a query matches a message, or why not, and how the index files it if it is there.

        For a transformation that matches also: what it runs, and what it shares with others.
        """
        kernel = self._seen()
        graph = None if schema is None else schema._kernel
        return Explanation.of(*kernel.explain(message, query, tenant, _dict(namespaces), limits, graph))

    @property
    def generation(self) -> int:
        """The number of the newest generation: it grows with every change that matching has seen."""
        return self._seen().generation

    def stats(self) -> Stats:
        """What the index amounts to now."""
        return Stats(*self._seen().stats())

    def _seen(self) -> _kernel.Index:
        """The kernel's index, with all changes made visible."""
        if self._kernel.changed:
            with self._changing:
                self._kernel.commit()
        return self._kernel


def _reopened(kind: type[Index], saved: Generation) -> Index:
    return kind.open(saved.directory, saved.number, cache_bytes=saved.cache_bytes)


_indexes: "weakref.WeakSet[Index]" = weakref.WeakSet()


def _after_fork() -> None:
    """A lock that another thread held when the process forked would never open in the child."""
    for index in _indexes:
        index._changing = threading.Lock()
        index._kernel.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def naive_batch(
    queries: Sequence[str],
    messages: Messages,
    namespaces: Namespaces | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> list[list[int]]:
    """For each message, the places of the queries that match it: slowly, straight from XPath's definition.

    What tests compare everything else with.
    """
    return _kernel.naive_batch(list(queries), _arrow(messages), _dict(namespaces), limits)


def naive_transform(
    queries: Sequence[str],
    messages: Messages,
    namespaces: Namespaces | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    *,
    output_limit: int = 64 << 20,
) -> list[list[tuple[bytes | None, str | None]]]:
    """For each message and each transformation, its output or the code of why there is none: slowly.

    What tests compare everything else with.
    """
    arguments = (list(queries), _arrow(messages), _dict(namespaces), limits, output_limit)
    return _kernel.naive_transform(*arguments)


def _dict(namespaces: Namespaces | None) -> dict[str, str] | None:
    return None if namespaces is None else dict(namespaces)


def _arrow(messages: Messages) -> Any:
    """What speaks Arrow goes as it is, anything else is copied into an Arrow array once."""
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "__arrow_c_stream__"):
        return messages
    return pa.array(messages, pa.large_binary())
