"""Kafka records → envelopes, and deliveries → Kafka records."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.model.envelope import VERSION
from tamis.model.message_id import CONTROL, MAX_CHARACTERS
from tamis.sources.kafka import DELIVERY_HEADERS, ID_HEADER, TIMEOUT_MS, KafkaSink, KafkaSource
from tamis.spark.connectors.kafka_headers import headers_of, with_headers
from tamis.spark.envelope import ENVELOPE_TYPE

_READER = {"default.api.timeout.ms": str(TIMEOUT_MS), "request.timeout.ms": str(TIMEOUT_MS * 3 // 4)}
_WRITER = {"max.block.ms": str(TIMEOUT_MS), "delivery.timeout.ms": str(TIMEOUT_MS)} | {
    "request.timeout.ms": str(TIMEOUT_MS * 3 // 4)
}
"""Defaults of the Kafka clients; the settings override them."""

_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def read_kafka(spark: SparkSession, source: KafkaSource) -> DataFrame:
    """A streaming DataFrame of the messages of topics. The query fails if Kafka dropped unread messages."""
    client = _READER | dict(source.client)
    reader = spark.readStream.format("kafka").options(**_client(source.servers, client))
    # The job itself retries and reports it; Spark would retry silently for minutes.
    reader = reader.option("kafkaConsumer.pollTimeoutMs", client["default.api.timeout.ms"])
    reader = reader.option("fetchOffset.numRetries", 1)
    reader = reader.option("subscribe", ",".join(source.topics)).option("startingOffsets", source.starting)
    reader = reader.option("maxOffsetsPerTrigger", source.max_offsets).option("includeHeaders", True)
    return from_kafka(reader.option("failOnDataLoss", True).load(), source)


def from_kafka(rows: DataFrame, source: KafkaSource) -> DataFrame:
    """Kafka records with headers as envelopes."""
    offset = F.concat_ws("-", "topic", "partition", "offset")
    id_headers = F.filter("headers", lambda header: header["key"] == ID_HEADER)
    # Of several headers with one name the last counts, as in Kafka's own clients.
    text = F.nullif(
        F.make_valid_utf8(F.try_element_at(id_headers, F.lit(-1))["value"].cast("string")), F.lit("")
    )
    bad_id = (F.length(text) > MAX_CHARACTERS) | text.rlike(CONTROL)
    empty = F.col("value").isNull()
    headers = headers_of(source)
    columns: dict[str, Column] = {
        "version": F.lit(VERSION),
        "tenant": F.lit(source.tenant),
        "source": F.lit(source.name),
        "id": F.coalesce(F.when(~bad_id, text), offset),
        "offset": offset,
        "broker": F.lit(None),
        "hops": F.lit(0),
        "topology": F.lit(None),
        "form": F.lit(None),
        "encoding": F.lit(None),
        "schema": F.lit(source.schema),
        # A producer may set any time. Python has no dates after the year 9999.
        "received": F.greatest(F.least("timestamp", F.lit(_LATEST)), F.lit(_EARLIEST)),
        "topic": F.col("topic"),
        "headers": F.when(headers.code.isNull(), headers.stored),
        "xml": F.col("value"),
        "code": F.when(empty, "no-xml").when(bad_id, "bad-id").otherwise(headers.code),
        "reason": F.when(empty, "the message has no value")
        .when(bad_id, f"the id in {ID_HEADER} is too long or has a control character")
        .otherwise(headers.reason),
    }
    types = {column.name: column.dataType for column in ENVELOPE_TYPE}
    return rows.select(*(column.cast(types[name]).alias(name) for name, column in columns.items()))


def to_kafka(deliveries: DataFrame, sink: KafkaSink) -> DataFrame:
    """Deliveries as the rows that Spark's Kafka writer expects.

    Needed columns: `tenant`, `subscriber`, `payload`, and those of `DELIVERY_HEADERS`.
    """
    own = [
        F.struct(F.lit(name).alias("key"), F.col(column).cast("string").cast("binary").alias("value"))
        for name, column in DELIVERY_HEADERS.items()
    ]
    return deliveries.select(
        _topic(sink).alias("topic"),
        F.col("subscriber").cast("binary").alias("key"),
        F.col("payload").cast("binary").alias("value"),
        with_headers(F.array(*own)).alias("headers"),
    )


def sink_options(sink: KafkaSink) -> dict[str, str]:
    """The options of the Kafka writer."""
    return _client(sink.servers, _WRITER | dict(sink.client)) | {"includeHeaders": "true"}


def _topic(sink: KafkaSink) -> Column:
    plain = sink.plain_names()
    parts: list[Column] = []
    for literal, name in sink.parts():
        parts.append(F.lit(literal))
        if name is not None:
            hashed = F.concat(F.lit("sha"), F.sha2(F.col(name).cast("binary"), 256))
            parts.append(F.when(F.col(name).rlike(plain), F.col(name)).otherwise(hashed))
    return F.concat(*parts)


def _client(servers: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers} | {f"kafka.{name}": value for name, value in settings.items()}
