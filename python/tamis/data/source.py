"""Where the records of a data set come from: a file or folder, or a query of a database."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tamis.data.reading import data_records
from tamis.data.sql_query import query_records
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
