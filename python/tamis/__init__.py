"""tamis sifts streams of XML messages through millions of standing XPath queries."""

from tamis.engine import Index, Schema, __version__, check, decompose, read_batch, read_dtd
from tamis.errors import (
    CatalogError,
    FrameError,
    IndexError,
    QueryError,
    ReadError,
    SinkError,
    StoreError,
    TamisError,
)
from tamis.model.explanation import Explanation
from tamis.model.matching import (
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

__all__ = [
    "Batch",
    "CatalogError",
    "Decomposition",
    "Explanation",
    "Found",
    "FrameError",
    "Generation",
    "Index",
    "IndexError",
    "Limits",
    "Output",
    "Query",
    "QueryError",
    "ReadError",
    "Schema",
    "SinkError",
    "Stats",
    "StoreError",
    "TamisError",
    "Transformed",
    "__version__",
    "check",
    "decompose",
    "read_batch",
    "read_dtd",
]
