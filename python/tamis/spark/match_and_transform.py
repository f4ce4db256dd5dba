"""Envelopes → matching subscriptions and outputs: the one step of the job that runs in Python workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, TimestampType

from tamis.model.matching import Generation, Limits
from tamis.model.sample import Sampling
from tamis.schema import Schema
from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.frames import MATCH_RESULT, OUTPUTS, RESULT
from tamis.spark.subscriptions import RECIPIENT, with_recipients
from tamis.spark.worker.envelopes import messages_with_envelopes
from tamis.spark.worker.generations import opened
from tamis.spark.worker.offsets import lists_of, offsets_of
from tamis.spark.worker.routes import split_routes
from tamis.spark.worker.sampling import Sampler
from tamis.spark.worker.task import MatchTask

KEPT = (
    *("tenant", "source", "id", "offset", "broker", "hops", "topology"),
    *("received", "topic", "headers", "encoding", "xml", "code", "reason"),
)
"""The columns of the envelope that deliveries, dead letters and links need."""

RECIPIENT_RESULT = StructType([*RECIPIENT.fields, *RESULT.fields])
"""A subscription that matches the message, and its output or error."""

LINKS = StructField("links", ArrayType(StringType(), containsNull=False), nullable=False)
"""The links whose neighbours want the message."""

RANK = StructField("rank", LongType())
"""The rank of a message that is sampled; null for the others."""

MATCHED_MESSAGE = StructType(
    [
        *(ENVELOPE_TYPE[name] for name in KEPT),
        RANK,
        StructField("matched_subscriptions", ArrayType(RECIPIENT_RESULT, containsNull=False), nullable=False),
        *MATCH_RESULT,
        OUTPUTS,
        LINKS,
        StructField("subscription_bytes", LongType(), nullable=False),
        StructField("generation", LongType(), nullable=False),
        StructField("matched", TimestampType(), nullable=False),
    ]
)
"""A message with its recipients, the error if it was refused, the outputs of transformations, the links that
it crosses, the bytes of the worker's table of subscriptions, and the generation and time of its batch."""


def match_and_transform(
    envelopes: DataFrame,
    generation: Generation,
    begun: datetime,
    tenant: str | None,
    limits: Limits,
    schema: Schema | None = None,
    sampling: Sampling | None = None,
) -> DataFrame:
    """One row for each message, with the subscriptions that it matches; `begun` is when its batch began.

    Without a `tenant`, each message has its own. Without `sampling`, no message is sampled.
    """
    step = MatchAndTransform(generation, begun, tenant, limits, schema, sampling)
    hash_of = F.lit(None).cast(RANK.dataType)
    if sampling is not None:
        hash_of = F.xxhash64(F.lit(sampling.key), "source", "id")
    return envelopes.select(*KEPT, hash_of.alias(RANK.name)).mapInArrow(step.run, MATCHED_MESSAGE)


@dataclass(frozen=True, slots=True)
class MatchAndTransform:
    """The step as it is pickled for the workers."""

    generation: Generation
    begun: datetime
    tenant: str | None
    limits: Limits
    schema: Schema | None
    sampling: Sampling | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        matching = MatchTask(
            generation=self.generation,
            message=len(KEPT) + 1,
            kept=len(KEPT) + 1,
            tenant=self.tenant or "",
            tenant_column=KEPT.index("tenant") if self.tenant is None else None,
            limits=self.limits,
            transforms=True,
            schema=self.schema,
        )
        if self.sampling is not None:
            batches = map(Sampler(self.sampling).select, batches)
        index = opened(self.generation).index
        attach = _with_envelope if index.asks_envelope else _with_message
        matched = matching.run_on(index, map(attach, batches))
        return map(self._add_batch_columns, map(_merge_results, with_recipients(self.generation, matched)))

    def _add_batch_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the bytes of the table of subscriptions, and the generation and the time of the batch.

        As columns, not as SQL literals: a literal is part of the code that Spark generates, so every batch
        would compile new classes (two, 0.1 s each, and the JVM would never warm up).
        """
        subscription_bytes = opened(self.generation).subscriptions.bytes
        table = pa.repeat(pa.scalar(subscription_bytes, pa.int64()), batch.num_rows)
        number = pa.repeat(pa.scalar(self.generation.number, pa.int64()), batch.num_rows)
        begun = pa.repeat(pa.scalar(self.begun, pa.timestamp("us", "UTC")), batch.num_rows)
        with_table = batch.append_column("subscription_bytes", table)
        return with_table.append_column("generation", number).append_column("matched", begun)


def _merge_results(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Merge the lists of recipients and of results into one list of structs, and split off the links."""
    recipients: Any = batch.column("matched_subscriptions")
    made: Any = batch.column("made")
    fields = [*recipients.flatten().flatten(), *made.flatten().flatten()]
    delivered = pa.StructArray.from_arrays(fields, RECIPIENT_RESULT.names)
    place = batch.schema.get_field_index("matched_subscriptions")
    joined = batch.set_column(place, "matched_subscriptions", lists_of(offsets_of(recipients), delivered))
    kept, links = split_routes(joined.drop_columns(["made"]), "matched_subscriptions")
    return kept.append_column(LINKS.name, links)


def _with_message(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with one more column: the message, null if the source refused it."""
    return batch.append_column("message", _message(batch))


def _with_envelope(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same with the envelope of each message."""
    column: Any = messages_with_envelopes(batch, _message(batch))
    return batch.append_column("message", column)


def _message(batch: pa.RecordBatch) -> Any:
    xml, code = batch.column("xml"), batch.column("code")
    return xml if code.null_count == len(code) else pc.if_else(code.is_null(), xml, pa.scalar(None, xml.type))
