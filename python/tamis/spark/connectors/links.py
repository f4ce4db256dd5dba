"""The messages of a batch → a parcel for each link that some of them cross."""

from collections.abc import Callable, Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.model.batch import Batch
from tamis.model.envelope import VERSION
from tamis.network.in_vain import count_in_vain
from tamis.network.link_end import WANTED, LinkEnd
from tamis.network.messages import MESSAGES
from tamis.spark.deliveries import is_refused


def publish_parcels(
    broker: str,
    ends: Sequence[LinkEnd],
    routed: Callable[[int], Collection[str]],
    matched: DataFrame,
    batch: Batch,
) -> None:
    """Publish what crosses; does nothing for links that have the batch's parcel already.

    `routed`: the links that are sent only what matches their routes, by generation; others are sent
    everything. Refused messages do not cross: they are dead letters here. The messages are collected on the
    driver, so a batch has to fit there; the limits of sources (`max_bytes`) bound it.
    """
    wanted = [f"wanted{at}" for at, _ in enumerate(ends)]
    sound = matched.where(~is_refused()).select(
        F.lit(VERSION).alias("version"),
        *("tenant", "source", "id", "offset"),
        # Null where it entered the network: here.
        F.coalesce("broker", F.lit(broker)).alias("broker"),
        *("hops", "topology"),
        F.lit(None).cast("string").alias("form"),
        *("encoding", "received", "topic", "headers", "xml", "generation"),
        (F.size("matched_subscriptions") > 0).alias("here"),
        *(F.array_contains("links", end.link.name).alias(at) for at, end in zip(wanted, ends, strict=True)),
    )
    table = sound.toArrow()
    if not table.num_rows:
        return
    selective = routed(table["generation"][0].as_py())
    messages = table.select(MESSAGES.names).cast(MESSAGES)
    key = f"{batch.checkpoint}:{batch.number}:{batch.plan}"
    chosen = {}
    for end, at in zip(ends, wanted, strict=True):
        selected = messages
        if end.link.name in selective:
            chosen[end.link.name] = table[at]
            selected = messages.append_column(WANTED, table[at])
        end.publish(key, selected)
    count_in_vain(ends, key, messages, table["here"], chosen)
