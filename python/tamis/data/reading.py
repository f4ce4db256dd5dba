"""A path → records."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from tamis.errors import DataError
from tamis.model.data import Data
from tamis.model.matching import Limits

_DEFAULT_LIMITS = Limits()

XML = (".xml", ".xml.gz")


def read_data(
    path: str | PathLike[str], *, record: str | None = None, limits: Limits = _DEFAULT_LIMITS
) -> Data:
    """Records from a path, see `data_records`, all in memory."""
    return Data(list(data_records(path, record=record, limits=limits)))


def data_records(
    path: str | PathLike[str], *, record: str | None = None, limits: Limits = _DEFAULT_LIMITS
) -> Iterator[bytes]:
    """Records from a path, one by one; `DataError` if it cannot be read.

    An XML file is one record; with `record`, an element name, each such element is one. A folder has a record
    per XML file, in the order of their names. The rows of `*.csv` and `*.parquet` are elements `row`.
    """
    path = Path(path)
    try:
        if path.is_dir():
            yield from _folder(path, limits)
        elif path.suffix.lower() == ".csv":
            from tamis.data.csv_file import csv_records

            yield from csv_records(path)
        elif path.suffix.lower() == ".parquet":
            from tamis.data.parquet_file import parquet_records

            yield from parquet_records(path)
        elif record is None:
            yield _whole(path, limits)
        else:
            yield from _cut(path, record, limits)
    except OSError as error:
        raise DataError("unreadable-data", f"{path} cannot be read: {error.strerror or error}") from error


def _folder(folder: Path, limits: Limits) -> Iterator[bytes]:
    paths = sorted(path for path in folder.iterdir() if path.name.endswith(XML) and path.is_file())
    if not paths:
        raise DataError("no-record", f"{folder} has no files *.xml or *.xml.gz")
    return (_whole(path, limits) for path in paths)


def _whole(path: Path, limits: Limits) -> bytes:
    from tamis.sources.bytestream import ByteStream, StreamError

    content = bytearray()
    try:
        with ByteStream(path) as stream:
            # One byte more than is allowed: the reader refuses it.
            while len(content) <= limits.document and (more := stream.read(1 << 20)):
                content += more
    except StreamError as error:
        raise DataError(error.code, f"{path}: {error.reason}") from error
    return bytes(content)


def _cut(path: Path, record: str, limits: Limits) -> Iterator[bytes]:
    from tamis.sources.bytestream import ByteStream
    from tamis.sources.record_splitter import RecordSplitter

    with ByteStream(path) as stream:
        for message in RecordSplitter(stream, record, limits).messages():
            if message.code is not None:
                raise DataError(message.code, f"{path}: record {message.number}: {message.reason}")
            yield message.xml
