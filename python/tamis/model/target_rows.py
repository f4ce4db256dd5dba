"""Tables of targets and their queries, as an index loads them."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Rows: TypeAlias = "pa.Table | pa.RecordBatch"


def with_target_numbers(table: Rows) -> Rows:
    """The table with targets as the kernel reads them."""
    import pyarrow as pa

    if "target" not in table.schema.names:
        return table
    place = table.schema.get_field_index("target")
    return table.cast(table.schema.set(place, pa.field("target", pa.uint64())))
