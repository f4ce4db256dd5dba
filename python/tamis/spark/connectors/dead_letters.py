"""Dead letters → their directory."""

from pyspark.sql import DataFrame

from tamis.model.batch import Batch
from tamis.sinks.dead_letters import DeadLetters
from tamis.spark.connectors.publishing import publish


def write_dead_letters(letters: DataFrame, dead_letters: DeadLetters, batch: Batch) -> int:
    """Publish the dead letters of a batch, with the columns of `LETTER`; their number.

    Idempotent. `SinkError` if they cannot be published.
    """
    return publish(letters, dead_letters, batch)
