"""Where the records of a data set come from: a file or folder, or a query of a database."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tamis.data.reading import data_records
from tamis.data.sql_query import query_records
from tamis.errors import DataError
from tamis.model.matching import Limits

_DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file or a folder, see `data_records`."""

    path: Path
    record: str | None = None
    """The element that each record is; None: the whole file."""

    def records(self, limits: Limits = _DEFAULT_LIMITS) -> Iterator[bytes]:
        """Its records as they are now."""
        return data_records(self.path, record=self.record, limits=limits)

    def __str__(self) -> str:
        return str(self.path) if self.record is None else f"{self.path}, each {self.record}"


@dataclass(frozen=True, slots=True)
class QuerySource:
    """What a query of a database returns, see `query_records`."""

    url: str
    """SQLAlchemy's; `${NAME}` stands for a variable of the environment."""
    query: str

    def records(self, limits: Limits = _DEFAULT_LIMITS) -> Iterator[bytes]:
        """What the query returns now."""
        return query_records(self.url, self.query)

    def __str__(self) -> str:
        return self.query


DataSource = FileSource | QuerySource


@dataclass(frozen=True, slots=True)
class RefreshedData:
    """A data set that is read again and again from its source, by the settings."""

    name: str
    interval: float = 3600.0
    """Seconds between two reads."""
    tenant: str = ""
    shared: bool = False
    """Whether the set is for all tenants."""
    key: str | None = None
    """The path of the value that identifies a record."""
    index: tuple[str, ...] | None = None
    """The paths whose values are indexed; None: all."""
    path: Path | None = None
    """A file or a folder."""
    record: str | None = None
    """The element of the file that each record is."""
    url: str | None = None
    """Of a database, instead of a path."""
    query: str | None = None
    """What is asked of the database: each row is a record."""

    def __post_init__(self) -> None:
        if not self.interval > 0:
            raise DataError("bad-setting", "[[data]]: interval is more than 0")
        if (self.path is None) == (self.url is None) or (self.url is None) != (self.query is None):
            raise DataError("bad-setting", f"[[data]]: {self.name} has either path, or url with query")

    @property
    def source(self) -> DataSource:
        """Where the records come from."""
        if self.path is not None:
            return FileSource(self.path, self.record)
        return QuerySource(self.url or "", self.query or "")
