"""Envelopes → what is to be delivered to whom: the one step of the job that runs in Python workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, TimestampType

from tamis.engine import Schema
from tamis.model.matching import Generation, Limits
from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.frames import ERROR, MADE, OUTPUTS
from tamis.spark.subscriptions import WANTED, looked_up
from tamis.spark.worker.generations import opened
from tamis.spark.worker.sizes import list_ends, short_lists
from tamis.spark.worker.task import Matching

KEPT = ("tenant", "source", "id", "offset", "received", "encoding", "xml", "code", "reason")
"""The columns of the envelope that deliveries and dead letters are made of."""

DELIVERED = StructType([*WANTED.fields, *MADE.fields])
"""A subscription that wants the message, and what is made of the message for it."""

SIFTED = StructType(
    [
        *(ENVELOPE_TYPE[name] for name in KEPT),
        StructField("wanted", ArrayType(DELIVERED, containsNull=False), nullable=False),
        StructField("candidates", LongType(), nullable=False),
        StructField("error", ERROR),
        OUTPUTS,
        StructField("generation", LongType(), nullable=False),
        StructField("matched", TimestampType(), nullable=False),
    ]
)
"""A message, who wants it, why it was refused if it was, and what transformations make of it.

Of its batch, the generation and the time.
"""


def sift(
    envelopes: DataFrame,
    generation: Generation,
    begun: datetime,
    tenant: str,
    limits: Limits,
    schema: Schema | None = None,
) -> DataFrame:
    """One row for each message, with the subscriptions that want it; `begun` is when its batch was."""
    sifting = Sifting(generation, begun, tenant, limits, schema)
    return envelopes.select(*KEPT).mapInArrow(sifting.run, SIFTED)


@dataclass(frozen=True, slots=True)
class Sifting:
    """The step, as it travels to the workers."""

    generation: Generation
    begun: datetime
    tenant: str
    limits: Limits
    schema: Schema | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        matching = Matching(
            generation=self.generation,
            message=len(KEPT),
            kept=len(KEPT),
            tenant=self.tenant,
            tenant_column=None,
            limits=self.limits,
            transforms=True,
            schema=self.schema,
        )
        matched = matching.run_on(opened(self.generation).index, map(_readable, batches))
        return map(self._stamped, map(_joined, looked_up(self.generation, matched)))

    def _stamped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With what is the same for the whole batch.

        As columns: constants become part of the program that Spark makes of a query, and it would compile
        another one for every batch (two of them, 0.1 s each, and none that Java ever warms up to).
        """
        number = pa.repeat(pa.scalar(self.generation.number, pa.int64()), batch.num_rows)
        begun = pa.repeat(pa.scalar(self.begun, pa.timestamp("us", "UTC")), batch.num_rows)
        return batch.append_column("generation", number).append_column("matched", begun)


def _joined(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Who wants a message and what is made of it for them, in one list."""
    wanted: Any = batch.column("wanted")
    made: Any = batch.column("made")
    fields = [*wanted.flatten().flatten(), *made.flatten().flatten()]
    delivered = pa.StructArray.from_arrays(fields, DELIVERED.names)
    place = batch.schema.get_field_index("wanted")
    joined = batch.set_column(place, "wanted", short_lists(list_ends(wanted), delivered))
    return joined.drop_columns(["made"])


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with one column more: messages, but null where the source could make none."""
    xml, code = batch.column("xml"), batch.column("code")
    if code.null_count < len(code):
        xml = pc.if_else(code.is_null(), xml, pa.scalar(None, xml.type))
    return batch.append_column("message", xml)
