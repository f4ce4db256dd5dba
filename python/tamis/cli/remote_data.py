"""The data sets of a service, with the same methods as those of a catalog, for the command line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.remote import RemoteError
from tamis.data.source import DataSource, FileSource
from tamis.model.data_set import DataSet, DataVersion, NewDataSet
from tamis.model.progress import Report

if TYPE_CHECKING:
    from tamis.client import Client

TYPES = {".xml": "application/xml", ".csv": "text/csv", ".parquet": "application/vnd.apache.parquet"}


_UNKNOWN = datetime.min
"""The API has no time of creation for a set."""


class RemoteData:
    """The data sets of a service. The token decides the tenant."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def add(self, new: NewDataSet, source: DataSource, report: Report) -> DataSet:
        if new.shared:
            raise RemoteError("not-shared", "data is shared where the catalog is, with --catalog")
        content, media_type, record = _upload(source)
        index = None if new.indexed is None else list(new.indexed)
        put = self._client.put_data(
            new.name, content, media_type=media_type, record=record, key=new.key, index=index
        )
        return _data_set(put)

    def replace(
        self, name: str, tenant: str, source: DataSource, report: Report, described: str | None = None
    ) -> DataSet:
        # A PUT would create a set that is not there.
        self._client.data_set(name)
        content, media_type, record = _upload(source)
        return _data_set(self._client.put_data(name, content, media_type=media_type, record=record))

    def change(
        self,
        name: str,
        tenant: str,
        upserts: DataSource | None,
        deletes: Sequence[str],
        report: Report,
        described: str | None = None,
    ) -> DataSet:
        if upserts is None:
            return _data_set(self._client.change_data(name, delete=deletes))
        content, media_type, record = _upload(upserts)
        changed = self._client.change_data(
            name, content, media_type=media_type, record=record, delete=deletes
        )
        return _data_set(changed)

    def list(self, tenant: str | None) -> Sequence[DataSet]:
        return [_data_set(one) for one in self._client.data_sets()]

    def get(self, name: str, tenant: str) -> DataSet:
        return _data_set(self._client.data_set(name))

    def versions(self, name: str, tenant: str) -> Sequence[DataVersion]:
        return [_version(one) for one in self._client.data_set(name)["versions"]]

    def users(self, one: DataSet, tenant: str) -> Sequence[str]:
        found: list[str] = self._client.data_set(one.name)["subscriptions"]
        return found

    def preview(self, name: str, tenant: str, count: int) -> Sequence[str]:
        return self._client.records(name, limit=count)

    def revert(self, name: str, tenant: str, version: int | None) -> DataSet:
        return _data_set(self._client.revert_data(name, version))

    def remove(self, name: str, tenant: str) -> bool:
        from tamis.client import ClientError

        try:
            self._client.data_set(name)
        except ClientError as error:
            if error.status == 404:
                return False
            raise
        self._client.remove_data(name)
        return True


@contextmanager
def remote_data(client: "Client") -> Iterator[RemoteData]:
    """The data sets of a service; the client is closed at the end."""
    with client:
        yield RemoteData(client)


def _upload(source: DataSource) -> tuple[bytes, str, str | None]:
    """What is sent for a source: its content, its media type, and the element of a record."""
    if not isinstance(source, FileSource) or source.path.suffix.lower() not in TYPES:
        reason = "a service takes one file: *.xml, *.csv or *.parquet; other sources work with --catalog"
        raise RemoteError("not-uploadable", reason)
    return Path(source.path).read_bytes(), TYPES[source.path.suffix.lower()], source.record


def _data_set(answer: dict[str, Any]) -> DataSet:
    indexed = answer["indexed"]
    return DataSet(
        name=answer["name"],
        tenant="",
        shared=answer["shared"],
        key=answer["key"],
        indexed=None if indexed is None else tuple(indexed),
        source="",
        created=_UNKNOWN,
        current=None if answer["current"] is None else _version(answer["current"]),
        users=answer["users"],
    )


def _version(answer: dict[str, Any]) -> DataVersion:
    return DataVersion(
        number=answer["number"],
        manifest="",
        files={},
        records=answer["records"],
        bytes=answer["bytes"],
        source=answer["source"],
        created=datetime.fromisoformat(answer["created"]),
    )
