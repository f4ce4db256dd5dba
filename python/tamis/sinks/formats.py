"""Writers for the rows of a task: Parquet, JSON lines, XML."""

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

from tamis.model.headers import pack_headers, unpack_headers
from tamis.sinks.payloads import text_of
from tamis.sinks.published import OpenPart, PartWriter
from tamis.sinks.xml_content import as_xml_content

BASE64 = "base64"
"""The value of `packed` for a payload that is not UTF-8, or not XML content."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Row = dict[str, Any]


def write_parquet(
    parts: PartWriter, partition: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> None:
    """Write one file per tenant: usually just one."""
    with ExitStack() as stack:
        writers: dict[str, tuple[OpenPart, pq.ParquetWriter]] = {}
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


def write_lines(parts: PartWriter, batches: Iterable[pa.RecordBatch]) -> None:
    """Write one file of JSON lines per subscriber; rows come sorted by subscriber."""
    for (tenant, subscriber), rows in _by_subscriber(batches):
        with parts.new(tenant, subscriber, subscriber) as part:
            for row in rows:
                part.file.write(json.dumps(_line(row), ensure_ascii=False).encode() + b"\n")
                part.rows += 1


def write_xml(parts: PartWriter, batches: Iterable[pa.RecordBatch]) -> None:
    """Write one document per subscriber, with an element per row; rows come sorted by subscriber."""
    for (tenant, subscriber), rows in _by_subscriber(_with_content(batches)):
        with parts.new(tenant, subscriber, subscriber) as part:
            attributes = _attributes({"tenant": tenant, "subscriber": subscriber})
            part.file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<deliveries%s>\n' % attributes)
            for row in rows:
                part.file.write(_element(row))
                part.rows += 1
            part.file.write(b"</deliveries>\n")


def read_lines(lines: Iterable[bytes], schema: pa.Schema) -> Iterator[Row]:
    """Parse the rows of a JSON lines file."""
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    for line in lines:
        row = json.loads(line)
        payload = row["payload"].encode()
        if row.get("headers") is not None:
            row["headers"] = pack_headers(row["headers"])
        row["payload"] = b64decode(payload) if row.pop("packed", None) == BASE64 else payload
        for name in times:
            row[name] = datetime.fromisoformat(row[name])
        yield row


def _by_subscriber(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, str], Iterator[Row]]]:
    rows = (row for batch in batches for row in batch.to_pylist())
    return groupby(rows, key=lambda row: (row["tenant"], row["subscriber"]))


def _line(row: Row) -> Row:
    """A row as a JSON object."""
    line = {name: _plain(value) for name, value in row.items() if name != "payload"}
    if row["headers"] is not None:
        line["headers"] = unpack_headers(row["headers"])
    if text_of(row["payload"], row["encoding"]) is None:
        return {**line, "packed": BASE64, "payload": b64encode(row["payload"]).decode()}
    return {**line, "payload": row["payload"].decode()}


def _with_content(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with one more column: the payload as XML content, or null."""
    for batch in batches:
        payloads: list[Any] = batch.column("payload").to_pylist()
        column: Any = pa.array(as_xml_content(payloads), pa.large_binary())
        yield batch.append_column("content", column)


def _element(row: Row) -> bytes:
    """A row as an element, with its payload as content."""
    content, payload = row.pop("content"), row.pop("payload")
    if content is None:
        row["packed"], content = BASE64, b64encode(payload)
    return b"<delivery%s>%s</delivery>\n" % (_attributes(row), content)


def _attributes(values: Row) -> bytes:
    pairs = (f" {name}={_quoted(str(_plain(value)))}" for name, value in values.items() if value is not None)
    return "".join(pairs).encode()


def _quoted(text: str) -> str:
    # XML does not allow these characters. Deliveries are still distinct by their ids.
    return quoteattr(_NOT_XML.sub("\ufffd", text))


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
