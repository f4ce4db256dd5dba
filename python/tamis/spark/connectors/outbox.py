"""Deliveries → the outbox."""

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.sinks.outbox import Outbox
from tamis.spark.connectors.publishing import StagedBatch, publish, stage


def write_outbox(deliveries: DataFrame, outbox: Outbox, batch: Batch) -> int:
    """Publish the deliveries of a batch, with the columns of `DELIVERY`; their number.

    Idempotent. `SinkError` if they cannot be published.
    """
    if not can_stage(outbox):
        # One file per subscriber: its rows must be in one task, in a deterministic order.
        tasks = deliveries.sparkSession.sparkContext.defaultParallelism
        rows = deliveries.repartition(tasks, "tenant", "subscriber")
        deliveries = rows.sortWithinPartitions("tenant", "subscriber", "received", "message", "id")
    return publish(deliveries, outbox, batch)


def can_stage(outbox: Outbox) -> bool:
    """Whether the deliveries of a batch are written as they are matched, without a shuffle."""
    return outbox.form == "parquet"


def stage_outbox(deliveries: DataFrame, outbox: Outbox, batch: Batch) -> StagedBatch:
    """Write the deliveries of a batch so that they can be published later."""
    return stage(deliveries, outbox, batch)
