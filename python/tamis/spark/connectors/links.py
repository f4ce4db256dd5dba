"""The messages of a batch → a parcel for each link that some of them cross."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.model.batch import Batch
from tamis.model.envelope import VERSION
from tamis.network.link_end import LinkEnd
from tamis.network.messages import MESSAGES
from tamis.spark.deliveries import is_refused


def publish_parcels(broker: str, ends: Sequence[LinkEnd], matched: DataFrame, batch: Batch) -> None:
    """Publish what crosses; does nothing for links that have the batch's parcel already.

    Refused messages do not cross: they are dead letters here. The messages are collected on the driver, so a
    batch has to fit there; the limits of sources (`max_bytes`) bound it.
    """
    sound = matched.where(~is_refused()).select(
        F.lit(VERSION).alias("version"),
        *("tenant", "source", "id", "offset"),
        # Null where it entered the network: here.
        F.coalesce("broker", F.lit(broker)).alias("broker"),
        *("hops", "encoding", "received", "topic", "headers", "xml"),
    )
    table = sound.toArrow().cast(MESSAGES)
    for end in ends:
        end.publish(f"{batch.checkpoint}:{batch.number}:{batch.plan}", table)
