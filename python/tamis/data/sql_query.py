"""What a query of a database returns now."""

import os
import re
from collections.abc import Iterator, Mapping

from tamis.data.rows import check_columns, rows_as_xml
from tamis.errors import DataError
from tamis.extras import require
from tamis.model.data import Data


def read_query(url: str, query: str, *, environment: Mapping[str, str] | None = None) -> Data:
    """The records of `query_records`, all in memory."""
    return Data(list(query_records(url, query, environment=environment)))


def query_records(url: str, query: str, *, environment: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """A record per row, in the order of the query's result; `DataError` if it fails.

    `url` is SQLAlchemy's. `${NAME}` in it stands for a variable of the environment, such as a password.
    """
    require("catalog")
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import SQLAlchemyError

    address = _with_variables(url, os.environ if environment is None else environment)
    try:
        engine = create_engine(address)
        try:
            with engine.connect().execution_options(stream_results=True) as connection:
                result = connection.execute(text(query))
                check_columns(result.keys(), "the result of the query")
                rows = (dict(row) for row in result.mappings())
                yield from rows_as_xml(rows, "the result of the query")
        finally:
            engine.dispose()
    except SQLAlchemyError as error:
        # Not the error's own text: it can show the address with its password.
        reason = f"the query of {url} failed: {type(error).__name__}"
        cause = getattr(error, "orig", None)
        raise DataError("failed-query", reason + (f": {cause}" if cause else "")) from None


def _with_variables(url: str, environment: Mapping[str, str]) -> str:
    def value(found: "re.Match[str]") -> str:
        if found[1] not in environment:
            raise DataError("no-variable", f"the variable {found[1]} of {url} is not set")
        return environment[found[1]]

    return re.sub(r"\$\{(\w+)\}", value, url)
