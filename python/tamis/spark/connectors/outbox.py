"""Deliveries → the outbox."""

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.sinks.outbox import Outbox
from tamis.spark.connectors.publishing import publish


def write_outbox(deliveries: DataFrame, outbox: Outbox, batch: Batch) -> int:
    """Publish the deliveries of a batch, with the columns of `DELIVERY`; their number.

    Idempotent. `SinkError` if they cannot be published.
    """
    if outbox.form != "parquet":
        # One file per subscriber: its rows must be in one task, in a deterministic order.
        tasks = deliveries.sparkSession.sparkContext.defaultParallelism
        rows = deliveries.repartition(tasks, "tenant", "subscriber")
        deliveries = rows.sortWithinPartitions("tenant", "subscriber", "received", "message", "id")
    return publish(deliveries, outbox, batch)
