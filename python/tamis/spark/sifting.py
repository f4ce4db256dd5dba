"""Envelopes → what is to be delivered to whom: the one step of the job that runs in Python workers."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from tamis.model import Generation, Limits
from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.generations import opened
from tamis.spark.matching import ERROR
from tamis.spark.subscriptions import WANTED_BY, looked_up
from tamis.spark.worker import Matching

KEPT = ("tenant", "source", "id", "offset", "received", "encoding", "xml", "code", "reason")
"""The columns of the envelope that deliveries and dead letters are made of."""

SIFTED = StructType(
    [
        *(ENVELOPE_TYPE[name] for name in KEPT),
        WANTED_BY,
        StructField("candidates", LongType(), nullable=False),
        StructField("error", ERROR),
    ]
)
"""A message, who wants it, and why it was refused if it was."""


def sift(envelopes: DataFrame, generation: Generation, tenant: str, limits: Limits) -> DataFrame:
    """One row for each message, with the subscriptions that want it."""
    return envelopes.select(*KEPT).mapInArrow(Sifting(generation, tenant, limits).run, SIFTED)


@dataclass(frozen=True, slots=True)
class Sifting:
    """The step, as it travels to the workers."""

    generation: Generation
    tenant: str
    limits: Limits

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        matching = Matching(
            generation=self.generation,
            message=len(KEPT),
            kept=len(KEPT),
            tenant=self.tenant,
            tenant_column=None,
            limits=self.limits,
            elements=0,
        )
        matched = matching.run_on(opened(self.generation), map(_readable, batches))
        return looked_up(self.generation, matched)


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with one column more: messages, but null where the source could make none."""
    xml, code = batch.column("xml"), batch.column("code")
    if code.null_count < len(code):
        xml = pc.if_else(code.is_null(), xml, pa.scalar(None, xml.type))
    return batch.append_column("message", xml)
