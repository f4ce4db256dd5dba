"""Value tables of DataFrames, on a real local Spark."""

from pathlib import Path
from random import Random

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis
from tamis.spark import values
from tests.helpers import random_documents as documents
from tests.helpers.spark_session import configured, frame


def test_rows_are_those_of_the_kernel(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(17)
    messages: list[bytes | None] = [
        documents.serialise(random, documents.document(random)) for _ in range(40)
    ]
    messages[7], messages[11] = None, b"<a>"
    columns = {"id": range(len(messages)), "xml": pa.array(messages, pa.binary()), "tag.s": ["m"] * 40}
    df = frame(spark, tmp_path / "messages", columns, files=2)
    read = tamis.read_values(messages)
    wanted = [tuple(row.values()) for row in read.rows.to_pylist()]
    for large in ("false", "true"):
        with configured(spark, {"spark.sql.execution.arrow.useLargeVarTypes": large}):
            rows = values(df, message="xml").orderBy("id", "node").collect()
        found = [row for row in rows if row.error is None]
        assert {row["tag.s"] for row in found} == {"m"}
        names = read.rows.schema.names[1:]
        got = [(row.id, *(row[name] for name in names)) for row in found]
        assert sorted(map(repr, got)) == sorted(map(repr, wanted))
        refused = {row.id: row.error.code for row in rows if row.error is not None}
        assert refused == {7: "no-message", 11: "unclosed-element"}


def test_joins_on_paths_and_elements_find_what_xpath_finds(spark: SparkSession, tmp_path: Path) -> None:
    messages = [
        "<order><item><sku>A</sku><n>2</n></item><item><sku>B</sku><n>7</n></item></order>",
        "<order><item><sku>A</sku><n>7</n></item><item><sku>B</sku><n>2</n></item></order>",
    ]
    df = frame(spark, tmp_path / "messages", {"id": [0, 1], "message": messages})
    values(df).createOrReplaceTempView("vals")
    found = spark.sql(
        """
        SELECT DISTINCT sku.id FROM vals sku JOIN vals n ON sku.id = n.id AND sku.elements[1] = n.elements[1]
        WHERE sku.path = '/order/item/sku' AND sku.text = 'B' AND n.path = '/order/item/n' AND n.number > 5
        """
    )
    index = tamis.Index()
    index.insert(1, "/order/item[sku = 'B'][n > 5]")
    expected = [at for at, message in enumerate(messages) if index.match(message.encode())]
    assert [row.id for row in found.collect()] == expected == [0]


def test_a_large_message_of_many_rows_keeps_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    """The message is not repeated for each of its rows: that would be almost 3 GB here."""
    message = "<a>" + "<b><c>1</c></b>" * 8_000 + "</a>"
    df = frame(spark, tmp_path / "messages", {"id": [7], "message": [message]})
    rows = values(df)
    assert rows.where("id = 7 AND path = '/a/b/c'").count() == 8_000
