"""The middle of the message flow: envelopes in, deliveries and dead letters out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from tamis.catalog import Catalog
from tamis.engine import read_dtd
from tamis.errors import FrameError
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.envelope import ENVELOPE, VERSION
from tamis.model.matching import Generation, Limits
from tamis.model.sharding import Sharding
from tamis.model.subscription import NewSubscription
from tamis.pipeline.batch_log import Counts
from tamis.schema import Schema
from tamis.spark import match_subscriptions
from tamis.spark.counting import count
from tamis.spark.deliveries import dead_letters, deliveries, refuse_duplicates
from tamis.spark.envelope import ENVELOPE_TYPE
from tamis.spark.match_and_transform import match_and_transform

TIME = datetime(2026, 1, 31, 12, 30, 0, 250_000, tzinfo=UTC)

MESSAGES: list[tuple[str, bytes | None, str | None]] = [
    ("m1", b"<a><b x='1'/></a>", None),
    ("m2", b"<a/>", None),
    ("m3", b"<a><b></a>", None),
    ("m4", b"no", "truncated"),
    ("m5", b"<c/>", None),
]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(str(tmp_path / "catalog.db")) as catalog:
        for number, (tenant, query) in enumerate([("t", "//b"), ("t", "/a"), ("t", "/a"), ("other", "/a")]):
            catalog.add(NewSubscription(f"s{number}", query, id=f"q{number}", tenant=tenant))
        yield catalog


@pytest.fixture(params=[None, Sharding("test", 1)], ids=["one-shard", "shards"])
def generation(request: pytest.FixtureRequest, catalog: Catalog, tmp_path: Path) -> Generation:
    """Of one shard, and of one for each query with room for one of them."""
    store = Store(tmp_path / "generations")
    with Publisher(catalog, store, tmp_path / "generations", sharding=request.param) as publisher:
        return Generation(str(tmp_path / "generations"), publisher.refresh(), open_bytes=0)


def envelopes(
    spark: SparkSession, messages: Sequence[tuple[str, str, bytes | None, str | None]] | None = None
) -> DataFrame:
    """Messages by id, offset, XML and code."""
    given = messages or [(name, f"{name}.xml", xml, code) for name, xml, code in MESSAGES]
    rows: list[dict[str, Any]] = [
        {
            "version": VERSION,
            "tenant": "t",
            "source": "inbox",
            "id": name,
            "offset": offset,
            "hops": 0,
            "received": datetime(2026, 1, 1, tzinfo=UTC),
            "xml": xml,
            "code": code,
            "reason": code and "it ends too early",
        }
        for name, offset, xml, code in given
    ]
    table = pa.Table.from_pylist(rows, ENVELOPE)
    return spark.createDataFrame(table.to_pandas(), ENVELOPE_TYPE)


def test_references_that_are_left_out_are_counted(spark: SparkSession, generation: Generation) -> None:
    messages = [
        ("m1", "m1.xml", b"<!DOCTYPE a SYSTEM 'x'><a>&e;&f;</a>", None),
        ("m2", "m2.xml", b"<a/>", None),
    ]
    given = envelopes(spark, messages)
    counts, _, _ = count(match_and_transform(given, generation, TIME, "t", Limits(skip_unread_entities=True)))
    assert (counts.matched, counts.dead, counts.skipped_entities) == (2, 0, 2)
    counts, _, _ = count(match_and_transform(given, generation, TIME, "t", Limits()))
    assert (counts.matched, counts.dead, counts.skipped_entities) == (1, 1, 0)


def test_each_message_reaches_those_of_its_tenant_who_want_it(
    spark: SparkSession, generation: Generation
) -> None:
    matched = match_and_transform(envelopes(spark), generation, TIME, "t", Limits())
    counts, has_duplicates, _ = count(matched)
    assert not has_duplicates
    assert counts == Counts(
        read=5,
        matched=2,
        dead=2,
        deliveries=5,
        candidates=counts.candidates,
        cache_bytes=counts.cache_bytes,
        subscription_bytes=counts.subscription_bytes,
    )
    assert counts.unmatched == 1

    rows = deliveries(matched).collect()
    found = sorted((row.message, row.subscription, row.subscriber, row.revision) for row in rows)
    assert found == [
        ("m1", "q0", "s0", 1),
        ("m1", "q1", "s1", 1),
        ("m1", "q2", "s2", 1),
        ("m2", "q1", "s1", 1),
        ("m2", "q2", "s2", 1),
    ]
    assert {row.tenant for row in rows} == {"t"}
    assert {row.generation for row in rows} == {generation.number}
    assert {row.matched.astimezone(UTC) for row in rows} == {TIME}
    assert {bytes(row.payload) for row in rows if row.message == "m1"} == {b"<a><b x='1'/></a>"}
    assert len({row.id for row in rows}) == len(rows)
    again = deliveries(matched).collect()
    assert sorted(again) == sorted(rows)


def test_an_id_twice_in_a_batch(spark: SparkSession, generation: Generation) -> None:
    """The second message is refused, by its place in the file; an exact copy is delivered once."""
    messages = [
        ("x", "f.jsonl#10 at 99", b"<a>second</a>", None),
        ("x", "f.jsonl#9 at 80", b"<a>first</a>", None),
        ("x", "f.jsonl#8 at 70", b"", "bad-json"),
        ("y", "f.jsonl#1 at 0", b"<a/>", None),
        ("y", "f.jsonl#2 at 40", b"<a/>", None),
    ]
    matched = match_and_transform(envelopes(spark, messages), generation, TIME, "t", Limits())
    counts, has_duplicates, _ = count(matched)
    assert has_duplicates
    assert (counts.read, counts.matched, counts.dead) == (5, 4, 1)

    matched = refuse_duplicates(matched)
    counts, _, _ = count(matched)
    assert (counts.read, counts.matched, counts.unmatched, counts.dead) == (5, 2, 1, 2)
    rows = deliveries(matched).collect()
    assert sorted((row.message, row.subscription) for row in rows) == [
        ("x", "q1"),
        ("x", "q2"),
        ("y", "q1"),
        ("y", "q2"),
    ]
    assert {bytes(row.payload) for row in rows if row.message == "x"} == {b"<a>first</a>"}
    assert len({row.id for row in rows}) == len(rows)
    letters = {row["code"]: row for row in dead_letters(matched).collect()}
    assert set(letters) == {"bad-json", "duplicate-id"}
    letter = letters["duplicate-id"]
    assert (letter["offset"], bytes(letter["raw"])) == ("f.jsonl#10 at 99", b"<a>second</a>")
    assert letter["reason"] == "the batch has another message with this id: f.jsonl#9 at 80"


def test_spark_compiles_no_classes_for_another_batch(spark: SparkSession, generation: Generation) -> None:
    """Values that change from batch to batch are data, not part of the generated code."""
    assert spark._jvm is not None
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts = []
    for second in range(3):
        matched = match_and_transform(
            envelopes(spark), generation, TIME + timedelta(seconds=second), "t", Limits()
        )
        count(matched)
        deliveries(matched).write.format("noop").mode("overwrite").save()
        counts.append(compiled.getCount())
    assert counts[1] == counts[2]


def test_refused_messages_become_dead_letters_with_the_reason(
    spark: SparkSession, generation: Generation
) -> None:
    letters = (
        dead_letters(match_and_transform(envelopes(spark), generation, TIME, "t", Limits()))
        .orderBy("id")
        .collect()
    )
    (malformed, truncated) = letters
    assert (malformed.id, malformed.code, malformed.line, malformed.position) == (
        "m3",
        "mismatched-tag",
        1,
        6,
    )
    assert bytes(malformed.raw) == b"<a><b></a>"
    assert (truncated.id, truncated.code, truncated.reason) == ("m4", "truncated", "it ends too early")
    assert (truncated.position, bytes(truncated.raw), truncated.offset) == (None, b"no", "m4.xml")


def test_a_host_with_a_cache_copies_what_it_maps(
    spark: SparkSession, generation: Generation, tmp_path: Path
) -> None:
    cached = Generation(generation.directory, generation.number, stored=True, cache=str(tmp_path / "cache"))
    assert count(match_and_transform(envelopes(spark), cached, TIME, "t", Limits()))[0].deliveries == 5
    cache = Store(generation.directory).cache_in(tmp_path / "cache")
    assert Store(cache).newest() == generation.number


def test_a_transformation_delivers_what_it_makes_and_fails_alone(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    wanted = {
        "made": "for $b in //b return <x>{ $b/@x }</x>",
        "none": "for $b in //b where $b/@x = 2 return $b",
        "hard": "//b[contains(., 'x') or contains(., 'y')]",
        "large": f"for $a in /a return <{'long' * 20}>{{ $a/b }}</{'long' * 20}>",
    }
    for name, query in wanted.items():
        catalog.add(NewSubscription("s", query, id=name, tenant="t"))
    store = Store(tmp_path / "generations")
    with Publisher(catalog, store, tmp_path / "generations") as publisher:
        generation = Generation(str(tmp_path / "generations"), publisher.refresh())
    schema = Schema(read_dtd(b"<!ELEMENT a (b?)> <!ELEMENT b EMPTY> <!ATTLIST b x CDATA #IMPLIED>"))
    matched = match_and_transform(envelopes(spark), generation, TIME, "t", Limits(output=80, work=1), schema)
    counts, has_duplicates, _ = count(matched)
    assert not has_duplicates
    assert (counts.matched, counts.dead, counts.deliveries, counts.failed) == (2, 2, 6, 3)

    rows = deliveries(matched).collect()
    payloads = {(row.message, row.subscription): (bytes(row.payload), row.encoding) for row in rows}
    assert payloads["m1", "made"] == (b'<x x="1"/>', "UTF-8")
    assert payloads["m1", "q0"] == (b"<a><b x='1'/></a>", None)
    assert len(payloads) == len(rows) == 6

    failed = [row for row in dead_letters(matched).collect() if row.subscription is not None]
    assert {(row.id, row.subscription, row.code) for row in failed} == {
        ("m1", "large", "output-limit"),
        ("m2", "large", "output-limit"),
        ("m1", "hard", "work-limit"),
    }
    assert {bytes(row.raw) for row in failed} == {b"<a><b x='1'/></a>", b"<a/>"}


def test_match_subscriptions_on_any_dataframe(spark: SparkSession, generation: Generation) -> None:
    """A row for each message and subscription, each for its own tenant."""
    rows = [
        ("m1", "<a><b x='1'/></a>", "t"),
        ("m2", "<a/>", "other"),
        ("m3", "<a>", "t"),
        ("m5", "<c/>", "t"),
    ]
    df = spark.createDataFrame(rows, "id string, message string, who string")
    with pytest.raises(FrameError, match="no-subscriptions"):
        match_subscriptions(df, generation)
    stored = replace(generation, stored=True)
    found = match_subscriptions(df, stored, keep=["id"], tenant_column="who")
    assert found.columns == ["id", "subscription", "revision", "subscriber", "delivery_target", "error"]
    results = {
        (row.id, row.subscription, row.subscriber, row.error and row.error.code) for row in found.collect()
    }
    assert results == {
        ("m1", "q0", "s0", None),
        ("m1", "q1", "s1", None),
        ("m1", "q2", "s2", None),
        ("m2", "q3", "s3", None),
        ("m3", None, None, "unclosed-element"),
    }
    taken = df.withColumnRenamed("id", "matched_subscriptions")
    with pytest.raises(FrameError, match="column-taken"):
        match_subscriptions(taken, stored)


def test_queries_ask_for_the_envelope(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    """By the stored one, so that a replay gives the same. Headers reach deliveries and dead letters."""
    queries = {
        "high": "$envelope/header[@name = 'priority'] = 'high'",
        "topic": "$envelope/topic = 'orders' and $envelope/source = 'inbox'",
        "time": "$envelope/received = '2026-01-01T00:00:00.000000Z'",
        "both": "/a[b]/b/@x = 1 and not($envelope/header)",
        "output": "for $h in $envelope/header return <h>{ $h/text() }</h>",
    }
    for name, query in queries.items():
        catalog.add(NewSubscription(name, query, id=name, tenant="t"))
    with Publisher(catalog, Store(tmp_path / "asks"), tmp_path / "asks") as publisher:
        generation = Generation(str(tmp_path / "asks"), publisher.refresh())
    given = envelopes(spark).withColumn("topic", F.when(F.col("id") == "m1", "orders"))
    headers = F.when(F.col("id").isin("m2", "m3"), '{"name":"<&>","priority":"high"}')
    matched = match_and_transform(given.withColumn("headers", headers), generation, TIME, "t", Limits())
    rows = deliveries(matched).collect()
    found = {(row.message, row.subscription) for row in rows if not row.subscription.startswith("q")}
    assert found == {
        *((message, "time") for message in ("m1", "m2", "m5")),
        *(("m1", name) for name in ("topic", "both")),
        *(("m2", name) for name in ("high", "output")),
    }
    assert {(row.message, row.headers) for row in rows} == {
        ("m1", None),
        ("m2", '{"name":"<&>","priority":"high"}'),
        ("m5", None),
    }
    (output,) = (row.payload for row in rows if row.subscription == "output")
    assert bytes(output) == b"<h>&lt;&amp;&gt;</h><h>high</h>"
    (letter,) = dead_letters(matched).where("id = 'm3'").collect()
    assert letter.headers == '{"name":"<&>","priority":"high"}'
    # Tenants apart, as of arrivals over links.
    each = match_and_transform(given.withColumn("headers", headers), generation, TIME, None, Limits())
    assert {(row.message, row.subscription) for row in deliveries(each).collect()} >= found
