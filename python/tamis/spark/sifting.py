"""Envelopes → what is to be delivered to whom: the one step of the job that runs in Python workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tamis.engine import Schema
from tamis.model import Generation, Limits
from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.frames import ERROR, MADE, OUTPUTS
from tamis.spark.generations import opened, opened_subscriptions
from tamis.spark.sizes import list_ends, short_lists
from tamis.spark.worker import Matching

KEPT = ("tenant", "source", "id", "offset", "received", "encoding", "xml", "code", "reason")
"""The columns of the envelope that deliveries and dead letters are made of."""

WANTED = StructType(
    [
        StructField("subscription", StringType(), nullable=False),
        StructField("revision", LongType(), nullable=False),
        StructField("subscriber", StringType(), nullable=False),
        StructField("delivery_target", StringType(), nullable=False),
        *MADE.fields,
    ]
)
"""A subscription that wants the message, and what is made of it for that: see `MADE`."""

SIFTED = StructType(
    [
        *(ENVELOPE_TYPE[name] for name in KEPT),
        StructField("wanted", ArrayType(WANTED, containsNull=False), nullable=False),
        StructField("candidates", LongType(), nullable=False),
        StructField("error", ERROR),
        StructField("outputs", OUTPUTS, nullable=False),
    ]
)
"""A message, who wants it, why it was refused if it was, and what transformations make of it."""


def sift(
    envelopes: DataFrame, generation: Generation, tenant: str, limits: Limits, schema: Schema | None = None
) -> DataFrame:
    """One row for each message, with the subscriptions that want it."""
    return envelopes.select(*KEPT).mapInArrow(Sifting(generation, tenant, limits, schema).run, SIFTED)


@dataclass(frozen=True, slots=True)
class Sifting:
    """The step, as it travels to the workers."""

    generation: Generation
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
        subscriptions = opened_subscriptions(self.generation)
        for matched in matching.run_on(opened(self.generation), map(_readable, batches)):
            targets: Any = matched.column("targets")
            made: Any = matched.column("made")
            known = subscriptions.look_up(targets.flatten().view(pa.uint64()))
            columns: list[Any] = [
                known.column("id").cast(pa.string()),
                known.column("revision").cast(pa.int64()),
                known.column("subscriber").cast(pa.string()),
                known.column("delivery_target").cast(pa.string()),
                *made.flatten().flatten(),
            ]
            wanted = pa.StructArray.from_arrays(columns, WANTED.names)
            lists = short_lists(list_ends(targets), wanted)
            place = matched.schema.get_field_index("targets")
            yield matched.drop_columns(["made"]).set_column(place, "wanted", lists)


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with one column more: messages, but null where the source could make none."""
    xml, code = batch.column("xml"), batch.column("code")
    if code.null_count < len(code):
        xml = pc.if_else(code.is_null(), xml, pa.scalar(None, xml.type))
    return batch.append_column("message", xml)
