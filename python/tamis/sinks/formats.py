"""The forms that a task's rows are written in: Parquet, JSON lines, XML."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from itertools import groupby
from typing import Any, BinaryIO, cast
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.sinks.published import Parts, Rows
from tamis.sinks.xml_content import embedded

BASE64 = "base64"
"""How a payload is `packed` that is no text, or not what can stand inside a document."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Row = dict[str, Any]


def write_parquet(parts: Parts, partition: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """A file for each tenant: one, as a rule."""
    with ExitStack() as stack:
        writers: dict[str, tuple[Rows, pq.ParquetWriter]] = {}
        for batch in batches:
            tenants: list[Any] = pc.unique(batch.column("tenant")).to_pylist()
            for tenant in tenants:
                if tenant not in writers:
                    part = stack.enter_context(parts.new(tenant, f"{partition:05}"))
                    file = cast("BinaryIO", part.file)
                    writers[tenant] = part, stack.enter_context(pq.ParquetWriter(file, schema))
                part, writer = writers[tenant]
                one = (
                    batch.filter(pc.equal(batch.column("tenant"), pa.scalar(tenant)))
                    if len(tenants) > 1
                    else batch
                )
                writer.write_batch(one)
                part.rows += one.num_rows


def write_lines(parts: Parts, batches: Iterable[pa.RecordBatch]) -> None:
    """A file of JSON lines for each subscriber, whose rows stand together."""
    for (tenant, subscriber), rows in _by_subscriber(batches):
        with parts.new(tenant, subscriber, subscriber) as part:
            for row in rows:
                part.file.write(json.dumps(_line(row), ensure_ascii=False).encode() + b"\n")
                part.rows += 1


def write_xml(parts: Parts, batches: Iterable[pa.RecordBatch]) -> None:
    """A document for each subscriber, whose rows stand together: an element for each row."""
    for (tenant, subscriber), rows in _by_subscriber(_with_embedded(batches)):
        with parts.new(tenant, subscriber, subscriber) as part:
            whose = _attributes({"tenant": tenant, "subscriber": subscriber})
            part.file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<deliveries%s>\n' % whose)
            for row in rows:
                part.file.write(_element(row))
                part.rows += 1
            part.file.write(b"</deliveries>\n")


def read_lines(lines: Iterable[bytes], schema: pa.Schema) -> Iterator[Row]:
    """The rows of a file of JSON lines."""
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    for line in lines:
        row = json.loads(line)
        payload = row["payload"].encode()
        row["payload"] = b64decode(payload) if row.pop("packed", None) == BASE64 else payload
        for name in times:
            row[name] = datetime.fromisoformat(row[name])
        yield row


def _by_subscriber(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, str], Iterator[Row]]]:
    rows = (row for batch in batches for row in batch.to_pylist())
    return groupby(rows, key=lambda row: (row["tenant"], row["subscriber"]))


def _line(row: Row) -> Row:
    """A row as JSON has it."""
    line = {name: _plain(value) for name, value in row.items() if name != "payload"}
    try:
        return {**line, "payload": row["payload"].decode()}
    except UnicodeDecodeError:
        return {**line, "packed": BASE64, "payload": b64encode(row["payload"]).decode()}


def _with_embedded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with a column more: the payload as it can stand in a document, or null."""
    for batch in batches:
        payloads: list[Any] = batch.column("payload").to_pylist()
        column: Any = pa.array(embedded(payloads), pa.large_binary())
        yield batch.append_column("embedded", column)


def _element(row: Row) -> bytes:
    """A row as an element, with its message inside."""
    inside, payload = row.pop("embedded"), row.pop("payload")
    if inside is None:
        row["packed"], inside = BASE64, b64encode(payload)
    return b"<delivery%s>%s</delivery>\n" % (_attributes(row), inside)


def _attributes(values: Row) -> bytes:
    pairs = (f" {name}={_quoted(str(_plain(value)))}" for name, value in values.items() if value is not None)
    return "".join(pairs).encode()


def _quoted(text: str) -> str:
    # A character that XML cannot have: ids tell deliveries apart all the same.
    return quoteattr(_NO_XML.sub("\ufffd", text))


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
