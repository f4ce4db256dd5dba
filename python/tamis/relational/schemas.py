"""The columns of the tables, in types that Spark reads: signed integers, plain strings, lists and structs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

COUNTED_USES = ("users", "texts", "numbers", "paths", "ranges")
"""How lines use a linear path: at all, as what the first join looks up (by what), and as ranges."""


def schemas() -> dict[str, "pa.Schema"]:
    """The columns of each table; each file has the number of its change before them."""
    import pyarrow as pa

    line: Any = [
        ("path", pa.int64()),
        ("subject", pa.string()),
        ("operator", pa.string()),
        ("text", pa.string()),
        ("length", pa.int64()),
        ("hash", pa.binary()),
        ("number", pa.float64()),
        ("places", pa.list_(pa.int32())),
        ("anchor", pa.int32()),
    ]
    anchor: Any = [("level", pa.int32()), ("parent", pa.int32()), ("needs", pa.int32())]
    key: Any = [("tenant", pa.string()), ("query", pa.int64())]
    counts = [(name, pa.int64()) for name in COUNTED_USES]
    fields: dict[str, Any] = {
        "alternatives": [
            *key,
            ("alternative", pa.int32()),
            ("access", pa.string()),
            ("lines", pa.list_(pa.struct(line))),
            ("negative", pa.list_(pa.struct(line))),
            ("anchors", pa.list_(pa.struct(anchor))),
            ("needs", pa.int32()),
            ("reason", pa.string()),
        ],
        "subscriptions": [*key, ("id", pa.string()), ("target", pa.int64())],
        "linear_paths": [
            ("path", pa.int64()),
            ("text", pa.string()),
            ("kind", pa.string()),
            ("steps", pa.int32()),
            *counts,
        ],
        "gone_targets": [("target", pa.int64())],
        "gone_queries": key,
    }
    return {name: pa.schema(columns) for name, columns in fields.items()}


def query_key(id_: str) -> int:
    """64 bits of a query's id, signed as Spark's `bigint`."""
    return signed(int(id_[:16], 16))


def signed(number: int) -> int:
    """A number of 64 bits as Spark's `bigint`."""
    return number - (1 << 64) if number >= 1 << 63 else number


def tag_paths_schema() -> "pa.Schema":
    """The columns of the tag paths that are remembered."""
    import pyarrow as pa

    columns: Any = [("path", pa.int64()), ("text", pa.string())]
    return pa.schema(columns)
