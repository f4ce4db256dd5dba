"""Dead letters: messages that were refused, with the reason, published like deliveries."""

import os

import pyarrow as pa

from tamis.connectors.forms import ParquetForm
from tamis.connectors.publishing import PublishedDirectory

LETTER = pa.schema(
    {
        "tenant": pa.string(),
        "source": pa.string(),
        "id": pa.string(),
        # Where the message stood in its source.
        "offset": pa.string(),
        "received": pa.timestamp("us", "UTC"),
        "code": pa.string(),
        "reason": pa.string(),
        # Where in the message; null where its source refused it: `raw` is then only its beginning.
        "position": pa.int64(),
        "line": pa.int64(),
        "column": pa.int64(),
        "raw": pa.binary(),
    }
)
"""A dead letter."""


class DeadLetters(PublishedDirectory):
    """The dead letters of a job, in Parquet."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        """A directory, or a URL that `pyarrow.fs` knows."""
        super().__init__(url, LETTER, ParquetForm())
