"""Deliveries → the outbox."""

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.sinks.outbox import Outbox
from tamis.spark.connectors.publishing import publish


def write_outbox(deliveries: DataFrame, outbox: Outbox, batch: Batch) -> int:
    """Publish a batch of deliveries, with the columns of `DELIVERY`; how many it has.

    It is published once, whatever happens and however often this is called. `SinkError` if it cannot be.
    """
    if outbox.form != "parquet":
        # A file for each subscriber: the rows of one are in one task, and always in the same order.
        tasks = deliveries.sparkSession.sparkContext.defaultParallelism
        rows = deliveries.repartition(tasks, "tenant", "subscriber")
        deliveries = rows.sortWithinPartitions("tenant", "subscriber", "received", "message", "id")
    return publish(deliveries, outbox, batch)
