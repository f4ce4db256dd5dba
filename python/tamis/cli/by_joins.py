"""`tamis match --engine relational`: the matches of documents by joins, on a Spark in this process."""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tamis
from tamis.cli.documents import read_document
from tamis.cli.inputs import Queries, envelope_of
from tamis.cli.limits import limits_of
from tamis.extras import require
from tamis.settings import load_settings

if TYPE_CHECKING:
    import pyarrow as pa


def by_joins(options: argparse.Namespace, queries: Queries) -> Iterator[list[int] | tamis.TamisError]:
    """For each document, the numbers of the queries that match it, or why it is refused."""
    require("spark")
    limits = limits_of(options)
    documents: list[bytes] = []
    answers: list[list[int] | tamis.TamisError] = []
    places = []
    for place, name in enumerate(options.documents):
        try:
            documents.append(read_document(name, limits.document))
            places.append(place)
            answers.append([])
        except tamis.TamisError as error:
            answers.append(error)
    for number, found in enumerate(_joined(options, queries, _messages(options, documents), limits)):
        answers[places[number]] = found
    yield from answers


def _messages(options: argparse.Namespace, documents: list[bytes]) -> "pa.Table":
    import pyarrow as pa

    columns: dict[str, Any] = {"document": range(len(documents)), "message": pa.array(documents, pa.binary())}
    envelope = envelope_of(options)
    if envelope is not None:
        headers = pa.array(
            [list(envelope.headers.items())] * len(documents), pa.map_(pa.string(), pa.string())
        )
        columns["envelope"] = pa.StructArray.from_arrays([headers], ["headers"])
    return pa.table(columns)


def _joined(
    options: argparse.Namespace, queries: Queries, messages: "pa.Table", limits: tamis.Limits
) -> list[list[int] | tamis.TamisError]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tamis.relational.tables import Tables
    from tamis.spark.relational import match
    from tamis.spark.session import create_session

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        queries.index.snapshot(place / "index")
        tables = Tables.create(place / "tables")
        columns = {
            "target": pa.array(list(queries.texts), pa.uint64()),
            "query": list(queries.texts.values()),
        }
        tables.change(pa.table(columns), namespaces=queries.namespaces)
        pq.write_table(messages, place / "messages.parquet")
        spark = create_session(load_settings(None, {}))
        try:
            spark.sparkContext.setLogLevel("ERROR")
            sent = spark.read.parquet(str(place / "messages.parquet"))
            envelope = "envelope" if "envelope" in messages.column_names else None
            found = match(
                sent,
                queries.index,
                tables,
                keep=["document"],
                plan=options.plan,
                limits=limits,
                envelope=envelope,
            )
            rows = found.collect()
        finally:
            spark.stop()
    targets: list[list[int]] = [[] for _ in range(messages.num_rows)]
    errors: dict[int, tamis.TamisError] = {}
    for row in rows:
        if row.error is None:
            targets[row.document].append(row.target)
        else:
            errors[row.document] = tamis.ReadError(**row.error.asDict())
    return [errors.get(number, sorted(matching)) for number, matching in enumerate(targets)]
