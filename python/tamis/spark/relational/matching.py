"""`match` and `match_subscriptions` by joins: the steps from messages to matches, in order.

    messages → values → tag paths → candidates (a plan) → those whose lines agree → targets
                                                        ↘ what joins cannot decide → the kernel ↗

Messages are identified by the hash of their content, so a batch may be read again without another answer.
The values and the candidates of a batch are computed when `match` is called: a plan needs the tag paths.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tamis.engine import Index
from tamis.errors import FrameError
from tamis.generations.store import Store
from tamis.model.matching import Generation, Limits
from tamis.relational.tables import MAX_TAG_PATHS, Tables, TablesError
from tamis.spark.frames import ERROR, columns_to_keep, quoted, refuse_name_clash
from tamis.spark.matching import match as match_by_kernel
from tamis.spark.relational.hits import CANDIDATE_KEY, agreeing, refuted
from tamis.spark.relational.plans import plan_named
from tamis.spark.relational.values_of_batch import KEY, BatchOfValues
from tamis.spark.relational.verifying import verified
from tamis.spark.subscriptions import recipients_of_targets
from tamis.spark.value_tables import values
from tamis.spark.worker.tenants import NO_TENANT

TOO_MANY_BINDINGS = "a path binds its branch points in too many ways"
UNKNOWN_TAG_PATHS = "the message has tag paths past the limit"

_DEFAULT_LIMITS = Limits()


@dataclass(slots=True)
class Counts:
    """What a call of `match` did, in rows."""

    values: int = 0
    joined: int = 0
    """Rows of the first joins: what the kernel calls candidates."""
    candidates: int = 0
    """Of these, those that pass the screen."""
    decided: int = 0
    """Of these, decided by it."""
    verified: dict[str, int] = field(default_factory=dict)
    """Pairs that the kernel verified, by the reason."""


def match(
    df: DataFrame,
    index: Index | Generation,
    tables: Tables | Path,
    *,
    plan: str | None = None,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    envelope: str | None = None,
    counts: Counts | None = None,
) -> DataFrame:
    """The rows of `tamis.spark.match`, found by joins on the tables of the same subscriptions.

    `index` verifies what joins cannot decide. `plan` is one of `PLANS`. `counts` is filled with the rows of
    each step. For the other options see `tamis.spark.with_matches`.
    """
    if df.isStreaming:
        raise FrameError("streaming", "match batches by joins: call it in foreachBatch")
    if tenant and tenant_column is not None:
        raise FrameError("two-tenants", "give a tenant or a column of tenants, not both")
    planned = plan_named(plan)
    generation = index.saved if isinstance(index, Index) else index
    tables = tables if isinstance(tables, Tables) else Tables.open(tables)
    counts = counts if counts is not None else Counts()
    kept = columns_to_keep(df, message, keep)
    refuse_name_clash(kept, ["target", "error"])
    rows = _rows(df, kept, message, tenant, tenant_column, envelope)
    messages = rows.select(*(name for name in rows.columns if not name.startswith("kept_")))
    read = values(
        messages.where("tenant IS NOT NULL"), message="content", keep=list(KEY), limits=limits
    ).localCheckpoint()
    refused = read.where("error IS NOT NULL").select(*KEY, "error").distinct()
    batch, unknown = _batch(read.where("error IS NULL"), tables)
    counts.values = batch.values.count()
    matched = _matches(batch, planned(batch), messages, generation, limits, counts)
    if unknown:
        # Past the limit of tag paths: the kernel matches these messages whole.
        some = batch.values.where(f.col("path_hash").isin(sorted(unknown))).select(*KEY).distinct()
        counts.verified[UNKNOWN_TAG_PATHS] = some.count()
        sent = messages.dropDuplicates(list(KEY)).join(some, list(KEY), "left_semi")
        by_kernel = match_by_kernel(
            sent,
            generation,
            message="content",
            keep=KEY,
            tenant_column="tenant",
            limits=limits,
            envelope="envelope" if envelope is not None else None,
        )
        matched = matched.unionByName(by_kernel.where("target IS NOT NULL").select(*KEY, "target"))
    found = matched.distinct()
    names = [f"kept_{number}" for number in range(len(kept))]
    columns = [f.col(name).alias(old) for name, old in zip(names, kept, strict=True)]
    no_error = f.lit(None).cast(ERROR).alias("error")
    hits = rows.join(found, list(KEY)).select(*columns, "target", no_error)
    errors = rows.join(refused, list(KEY)).select(
        *columns, f.lit(None).cast("bigint").alias("target"), "error"
    )
    missing = rows.where("tenant IS NULL").select(
        *columns, f.lit(None).cast("bigint").alias("target"), _no_tenant().alias("error")
    )
    return hits.unionByName(errors).unionByName(missing)


def match_subscriptions(
    df: DataFrame,
    generation: Generation,
    tables: Tables | Path,
    *,
    plan: str | None = None,
    message: str = "message",
    keep: Sequence[str] | None = None,
    tenant: str = "",
    tenant_column: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    envelope: str | None = None,
    counts: Counts | None = None,
) -> DataFrame:
    """The rows of `tamis.spark.match_subscriptions`, found by joins; for the options see `match`.

    The tables must be of the catalog's version that the generation is of.
    """
    tables = tables if isinstance(tables, Tables) else Tables.open(tables)
    if generation.stored:
        manifest = Store(generation.directory).manifest(generation.number)
        tables.require(manifest.catalog, manifest.version)
    kept = columns_to_keep(df, message, keep)
    found = match(
        df,
        generation,
        tables,
        plan=plan,
        message=message,
        keep=kept,
        tenant=tenant,
        tenant_column=tenant_column,
        limits=limits,
        envelope=envelope,
        counts=counts,
    )
    return recipients_of_targets(found, kept, generation)


def _rows(
    df: DataFrame,
    kept: Sequence[str],
    message: str,
    tenant: str,
    tenant_column: str | None,
    envelope: str | None,
) -> DataFrame:
    """The rows with the columns to keep under other names, and `tenant`, `message`, `content`, `envelope`."""
    content = f.col(quoted([message])[0])
    owner = f.lit(tenant) if tenant_column is None else f.col(quoted([tenant_column])[0])
    parts: list[Column] = [f.sha2(content.cast("binary"), 256)]
    columns = [content.alias("content")]
    if envelope is not None:
        given = f.col(quoted([envelope])[0])
        parts.append(f.coalesce(f.to_json(given), f.lit("")))
        columns.append(given.alias("envelope"))
    digest = f.substring(f.unhex(f.sha2(f.concat(*parts).cast("binary"), 256)), 1, 16)
    names = [f.col(name).alias(f"kept_{number}") for number, name in enumerate(quoted(kept))]
    return df.select(
        *names,
        owner.alias("tenant"),
        f.coalesce(digest, f.lit(bytearray(1))).alias("message"),
        *columns,
    )


def _batch(read: DataFrame, tables: Tables) -> tuple[BatchOfValues, set[int]]:
    """The values with the matches of their tag paths; and the tag paths past the limit."""
    most = 2 * MAX_TAG_PATHS
    found = read.select("path_hash", "path").distinct().limit(most + 1).collect()
    texts = Counter(row.path_hash for row in found)
    if twice := [hash_ for hash_, count in texts.items() if count > 1]:
        raise TablesError("path-hash", f"two tag paths have the hash {twice[0]}")
    tag_paths = {row.path_hash: row.path for row in found}
    path_match, unknown = tables.path_matches(tag_paths)
    rows = tables.live("linear_paths").to_pylist()
    linear: Mapping[int, Mapping[str, int]] = {row["path"]: row for row in rows}
    return BatchOfValues(read.sparkSession, tables, read, path_match, linear), unknown


def _matches(
    batch: BatchOfValues,
    candidates: DataFrame,
    messages: DataFrame,
    generation: Generation,
    limits: Limits,
    counts: Counts,
) -> DataFrame:
    """The matches of candidates: rows `tenant`, `message`, `target`."""
    candidates = candidates.localCheckpoint()
    summary = candidates.agg(
        f.count("*").alias("all"),
        f.sum(f.expr("int(is_decided)")).alias("decided"),
        f.max(f.expr("array_max(transform(anchors, anchor -> anchor.level))")).alias("levels"),
        f.max(f.expr("size(negative)")).alias("negative"),
    ).first()
    assert summary is not None
    counts.joined = sum(observation.get["rows"] for observation in batch.observations)
    counts.candidates, counts.decided = summary["all"], summary["decided"] or 0
    columns = [*CANDIDATE_KEY, "reason"]
    holds = candidates.where("is_decided").select(*columns)
    unbounded = None
    if counts.candidates > counts.decided:
        undecided = candidates.where("NOT is_decided")
        agreed, unbounded = agreeing(batch, undecided, summary["levels"] or 0)
        agreed = agreed.unionByName(undecided.where("size(lines) = 0").select(*CANDIDATE_KEY))
        if summary["negative"]:
            agreed = agreed.join(refuted(batch, undecided), list(CANDIDATE_KEY), "left_anti")
        reasons = undecided.select(*columns).distinct()
        holds = holds.unionByName(reasons.join(agreed.distinct(), list(CANDIDATE_KEY), "left_semi"))
        # Too many bindings to say which: the pair is verified.
        unsure = reasons.join(unbounded, list(CANDIDATE_KEY), "left_semi")
        unsure = unsure.withColumn("reason", f.coalesce("reason", f.lit(TOO_MANY_BINDINGS)))
        holds = holds.unionByName(unsure)
    holds = holds.localCheckpoint()
    subscriptions = batch.table("subscriptions").select("tenant", "query", "target")
    exact = holds.where("reason IS NULL").select(*KEY, "query").distinct()
    matched = exact.join(subscriptions, ["tenant", "query"]).select(*KEY, "target")
    pairs = holds.where("reason IS NOT NULL").select(*KEY, "query", "reason").distinct()
    for row in pairs.groupBy("reason").count().collect():
        counts.verified[row["reason"]] = row["count"]
    if counts.verified:
        undecided_pairs = pairs.select(*KEY, "query").distinct().join(exact, [*KEY, "query"], "left_anti")
        by_kernel = verified(messages, undecided_pairs, subscriptions, generation, limits)
        matched = matched.unionByName(by_kernel)
    return matched


def _no_tenant() -> Column:
    values_ = {"code": NO_TENANT, "reason": "the message has no tenant", "offset": 0, "line": 1, "column": 1}
    fields = [f.lit(values_.get(field_.name)).cast(field_.dataType).alias(field_.name) for field_ in ERROR]
    return f.struct(*fields)
