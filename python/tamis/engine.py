"""The one importer of the kernel: its plain values in, the public types out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tamis import _kernel
from tamis.model import Batch, Limits, Query

__version__: str = _kernel.__version__

Messages = pa.Array | pa.ChunkedArray | Iterable[bytes | str | None]
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


def _dict(namespaces: Namespaces | None) -> dict[str, str] | None:
    return None if namespaces is None else dict(namespaces)


def _arrow(messages: Messages) -> Any:
    """What speaks Arrow goes as it is, anything else is copied into an Arrow array once."""
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "__arrow_c_stream__"):
        return messages
    return pa.array(messages, pa.large_binary())
