"""Headers of Kafka records ↔ headers of messages, by the rules of `tamis.model.headers`."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.model.headers import MAX_BYTES, MAX_HEADERS, NAME, NO_VALUE, RESERVED
from tamis.sources.kafka import KafkaSource


@dataclass(frozen=True, slots=True)
class RecordHeaders:
    """Expressions over a record."""

    stored: Column
    """The headers as they are stored; null without headers, undefined if they are refused."""
    code: Column
    reason: Column
    """Why they are refused, else null."""


def headers_of(source: KafkaSource) -> RecordHeaders:
    """The headers that the record in the column `headers` gives its message.

    Those of deliveries (`tamis-…`) are not taken. Unless the source names the headers, neither are those
    that are not allowed: tracing and serialisers set binary headers of their own. Of several with one name
    the last counts, as in Kafka's own clients.
    """

    def as_text(header: Column) -> Column:
        value = F.coalesce(header["value"], F.lit(b"")).cast("string")
        return F.struct(header["key"].alias("key"), value.alias("value"))

    def is_taken(header: Column) -> Column:
        is_ours = F.lower(header["key"]).startswith(F.lit(RESERVED))
        if source.headers is None:
            return ~is_ours & ~_is_malformed(as_text(header))
        return ~is_ours & header["key"].isin(*source.headers)

    taken = F.transform(F.filter("headers", is_taken), as_text)
    bad = F.filter(taken, _is_malformed)
    size = F.aggregate(taken, F.lit(0), lambda sum, one: sum + _bytes(one["key"]) + _bytes(one["value"]))
    too_many, too_long = F.size(taken) > MAX_HEADERS, size > MAX_BYTES
    name = F.make_valid_utf8(F.try_element_at(bad, F.lit(1))["key"])
    reason = (
        F.when(too_many, F.format_string(f"there are %d headers, {MAX_HEADERS} are allowed", F.size(taken)))
        .when(too_long, F.format_string(f"the headers have %d bytes, {MAX_BYTES} are allowed", size))
        .when(
            F.size(bad) > 0,
            F.format_string(
                "the header '%s' has a name or a value that is not allowed", F.left(name, F.lit(80))
            ),
        )
    )
    code = F.when(too_many | too_long, "header-limit").when(F.size(bad) > 0, "bad-header")
    last = F.array_sort(F.filter(taken, lambda one, at: _is_last(taken, one, at)))
    # In a branch: only headers within the limits are compared with each other.
    stored = F.when(code.isNull() & (F.size(taken) > 0), F.to_json(F.map_from_entries(last)))
    return RecordHeaders(stored, code, reason)


def with_headers(own: Column) -> Column:
    """The headers of a record: our own, and those of the message, in the column `headers`."""
    entries = F.map_entries(F.from_json("headers", "map<string, string>"))
    given = F.transform(
        entries, lambda one: F.struct(one["key"].alias("key"), one["value"].cast("binary").alias("value"))
    )
    return F.when(F.col("headers").isNull(), own).otherwise(F.concat(own, given))


def _is_malformed(header: Column) -> Column:
    is_named = header["key"].rlike(rf"\A(?:{NAME})\z")
    return ~is_named | ~F.is_valid_utf8(header["value"]) | header["value"].rlike(NO_VALUE)


def _is_last(headers: Column, header: Column, at: Column) -> Column:
    later = F.slice(headers, at + 2, F.size(headers))
    return ~F.exists(later, lambda one: one["key"] == header["key"])


def _bytes(text: Column) -> Column:
    return F.octet_length(text)
