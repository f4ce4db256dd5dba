"""Refused messages → the dead letters."""

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.sinks.dead_letters import DeadLetters
from tamis.spark.connectors.publishing import publish


def bury(letters: DataFrame, dead_letters: DeadLetters, batch: Batch) -> int:
    """Publish the dead letters of a batch, with the columns of `LETTER`; how many it has.

    They are published once, whatever happens and however often this is called. `SinkError` if they cannot be.
    """
    return publish(letters, dead_letters, batch)
