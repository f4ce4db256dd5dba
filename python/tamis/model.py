"""The values that the API takes and gives."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Limits:
    """What a message may cost. Each limit has an error code of its own, `<field>-limit`."""

    document: int = 10 << 20
    """Bytes of a message, as received and as UTF-8."""
    depth: int = 256
    attributes: int = 256
    """Attributes of one element."""
    namespaces: int = 64
    """Namespace declarations of one element."""
    name: int = 1 << 10
    """Bytes of one name."""
    text: int = 1 << 20
    """Bytes of one run of text, attribute value, comment or processing instruction."""
    internal_subset: bool = False
    """Whether an internal DTD subset is read; refused otherwise."""
    expansion: int = 1 << 20
    """Bytes that entity references of one message may add up to."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was accepted: its id is the same everywhere, its canonical text too."""

    id: str
    canonical: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages, read. The columns are told in `docs/tables.md`."""

    nodes: pa.RecordBatch
    attributes: pa.RecordBatch
    errors: pa.RecordBatch
