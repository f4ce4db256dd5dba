"""The relational engine on a real Spark: every plan against the cases and lxml, groups by tenant."""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tamis
from tamis.catalog import Catalog
from tamis.errors import FrameError
from tamis.generations.catalog_tables import update_tables
from tamis.generations.publisher import Publisher
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tamis.relational.tables import Tables, TablesError
from tamis.spark import match as match_by_kernel
from tamis.spark import match_subscriptions as match_subscriptions_by_kernel
from tamis.spark.relational import PLANS, match, match_subscriptions
from tamis.spark.relational.matching import Counts
from tests.helpers import CASES
from tests.helpers import random_documents as documents
from tests.helpers.engines import Answer
from tests.helpers.spark_session import frame
from tests.kernel.test_random import Group

SEED = int(os.environ.get("TAMIS_SEED") or time.time_ns() % 1_000_000_007)
GROUPS = int(os.environ.get("TAMIS_PAIRS") or 12_000) // (240 * 24)


class Work(NamedTuple):
    """Queries × messages of a tenant."""

    queries: Sequence[str]
    messages: Sequence[bytes]
    namespaces: Mapping[str, str]


def by_joins(
    spark: SparkSession, folder: Path, work: Sequence[Work], plan: str
) -> tuple[list[Answer], Counts]:
    """The matches of each group by a plan, which runs once for all of them."""
    rows: dict[str, list[Any]] = {"target": [], "tenant": [], "query": [], "prefixes": []}
    sent: dict[str, list[Any]] = {"tenant": [], "number": [], "message": []}
    first = []
    for place, group in enumerate(work):
        first.append(len(rows["target"]))
        for query in group.queries:
            rows["target"].append(len(rows["target"]))
            rows["tenant"].append(f"t{place}")
            rows["query"].append(query)
            rows["prefixes"].append(place)
        for number, message in enumerate(group.messages):
            sent["tenant"].append(f"t{place}")
            sent["number"].append(number)
            sent["message"].append(message)
    places = {
        "target": pa.array(rows["target"], pa.uint64()),
        "prefixes": pa.array(rows["prefixes"], pa.uint32()),
    }
    table = pa.table({**rows, **places})
    index = tamis.Index()
    prefixes = [group.namespaces for group in work]
    assert index.load(table, namespaces=prefixes).num_rows == 0
    index.snapshot(folder / "index")
    tables = Tables.create(folder / "tables")
    assert tables.change(table, namespaces=prefixes) == []
    counts = Counts()
    columns = {**sent, "message": pa.array(sent["message"], pa.binary())}
    found = match(
        frame(spark, folder / "messages", columns, files=2),
        index,
        tables,
        plan=plan,
        tenant_column="tenant",
        counts=counts,
    )
    answers: list[Answer] = [[set() for _ in group.messages] for group in work]
    for row in found.collect():
        assert row.error is None, row
        place = int(row.tenant[1:])
        answers[place][row.number].add(row.target - first[place])
    return answers, counts


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_gives_the_expected_answer_for_every_case(
    spark: SparkSession, tmp_path: Path, plan: str
) -> None:
    cases = [
        case
        for path in sorted(CASES.glob("*.toml"))
        for case in tomllib.loads(path.read_text("utf-8")).get("case", [])
        if "xml" in case
    ]
    work = [
        Work(
            [*case.get("true", []), *case.get("false", [])],
            [case["xml"].encode()],
            case.get("namespaces", {}),
        )
        for case in cases
    ]
    answers, counts = by_joins(spark, tmp_path, work, plan)
    wrong = []
    for case, group, (matched,) in zip(cases, work, answers, strict=True):
        for place in sorted(matched ^ set(range(len(case.get("true", []))))):
            wrong.append((case["name"], group.queries[place]))
    assert not wrong
    print(counts)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_agrees_with_lxml(
    spark: SparkSession, tmp_path: Path, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    groups = [Group(random) for _ in range(GROUPS)]
    work = [
        Work([query.text for query in group.queries], group.messages, documents.NAMESPACES)
        for group in groups
    ]
    answers, counts = by_joins(spark, tmp_path, work, plan)
    for group, given in zip(groups, answers, strict=True):
        for message, right, found in zip(group.messages, group.oracle(), given, strict=True):
            wrong = [group.queries[place].text for place in sorted(right ^ found)]
            assert not wrong, f"{plan} and lxml differ (seed {SEED}) on {message!r}: {wrong}"
    pairs = sum(len(group.queries) * len(group.messages) for group in groups)
    matched = sum(len(found) for given in answers for found in given)
    verified = sum(counts.verified.values())
    with capsys.disabled():
        print(f"\n{plan}: seed {SEED}, {pairs:,} pairs, {matched:,} match; {counts}")
    assert verified < matched


def test_malformed_messages_are_error_rows(spark: SparkSession, tmp_path: Path) -> None:
    index = tamis.Index()
    index.insert(7, "//a[b = 'x']", tenant="one")
    index.snapshot(tmp_path / "index")
    tables = Tables.create(tmp_path / "tables")
    rows = {"target": [7], "query": ["//a[b = 'x']"], "tenant": ["one"]}
    assert tables.change(pa.table(rows)) == []
    columns = {
        "id": range(5),
        "message": pa.array(["<a><b>x</b></a>", "<a>", None, "<a/>", "<a><b>x</b></a>"], pa.string()),
        "owner": ["one", "one", "one", None, "two"],
    }
    df = frame(spark, tmp_path / "messages", columns)
    by_kernel = match_by_kernel(df, index, tenant_column="owner").collect()
    by_join = match(df, index, tables, tenant_column="owner").collect()
    assert sorted(map(repr, by_join)) == sorted(map(repr, by_kernel))
    with pytest.raises(FrameError, match="no-plan"):
        match(df, index, tables, plan="fast")


def test_subscriptions_of_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows as by the kernel, also after changes; tables of another version are refused."""
    given = {"q0": "//b[@x = 1]", "q1": "/a[b][not(c)]", "q2": "//a[count(b) = 1]", "q3": "//b[@x = 1]"}
    messages = ["<a><b x='1'/></a>", "<a><b x='01.0'/><c/></a>", "<a>", "<c/>"]
    df = frame(spark, tmp_path / "messages", {"id": range(len(messages)), "message": messages})
    with Catalog(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        for id, query in given.items():
            catalog.add(NewSubscription("bob", query, id, ""))
        store = Store(tmp_path / "store")
        with Publisher(catalog, store, tmp_path / "store") as publisher:
            for change in (lambda: None, lambda: catalog.remove("q0", tenant="")):
                change()
                generation = tamis.Generation(str(tmp_path / "store"), publisher.refresh(), stored=True)
                tables = update_tables(catalog, tmp_path / "tables")
                by_kernel = match_subscriptions_by_kernel(df, generation).collect()
                by_join = match_subscriptions(df, generation, tmp_path / "tables").collect()
                assert sorted(map(repr, by_join)) == sorted(map(repr, by_kernel))
                assert {row.subscription for row in by_join} >= {"q1", "q2", "q3"}
            catalog.add(NewSubscription("bob", "//z", "new", ""))
            newer = tamis.Generation(str(tmp_path / "store"), publisher.refresh(), stored=True)
    with pytest.raises(TablesError, match="tables-old"):
        match_subscriptions(df, newer, tables)


def test_the_command_prints_what_the_kernel_prints(tmp_path: Path) -> None:
    for name, text in (("1.xml", "<a><b x='1'/></a>"), ("2.xml", "<a>"), ("3.xml", "<c/>")):
        (tmp_path / name).write_text(text)
    (tmp_path / "queries").write_text(
        "//b[@x = 1]\n//[\n/a[count(b) = 1]\n$envelope/header[@name = 'h'] = 'v'\n"
    )
    names = ["1.xml", "missing.xml", "2.xml", "3.xml"]
    printed = []
    for engine in ("kernel", "relational"):
        command = [sys.executable, "-m", "tamis.cli", "match", "--queries", "queries", "--engine", engine]
        ran = subprocess.run(
            [*command, "--header", "h=v", *names], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        refused = [line for line in ran.stderr.splitlines() if line.startswith("queries:")]
        printed.append((ran.stdout, refused))
    assert printed[0] == printed[1]
    assert printed[0][0].splitlines()[0] == "1.xml\t1 3 4"


def test_rows_of_joins_follow_the_hits(spark: SparkSession, tmp_path: Path) -> None:
    """Counted: 2,000 equal siblings under five branches, and one value in half of all messages."""
    siblings = "".join(f"<i><a>1</a><b>2</b><c>3</c><d>4</d><e>{n}</e></i>" for n in range(2_000))
    queries = ["//i[a = 1][b = 2][c = 3][d = 4][e = 1999]", "//i[a = 1][b = 2][c = 3][d = 4][e = 'x']"]
    queries += [f"/m[s = '{'common' if n % 2 else n}'][v > {n}]" for n in range(400)]
    messages = [f"<m>{siblings}</m>"] + [
        f"<m><s>{'common' if n % 2 else n}</s><v>7</v></m>" for n in range(40)
    ]
    work = [Work(queries, [message.encode() for message in messages], {})]
    ((whole, *others),), counts = by_joins(spark, tmp_path, work, "unroll")
    assert whole == {0}
    for number, matched in enumerate(others):
        wanted = {2 + n for n in range(7) if (n % 2 == 1) == (number % 2 == 1) and (n % 2 or n == number)}
        assert matched == wanted
    # Ranges are screened in the row. Of the first two queries, the one without `x` is a candidate, once.
    assert counts.candidates == sum(map(len, others)) + 1
    assert counts.decided == counts.candidates - 1
    assert counts.joined == 200 * 20 + 20 + 1
    assert counts.verified == {}
