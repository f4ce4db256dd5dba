"""The workload for matching on Spark: messages in Parquet, and queries of which few match a message."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from benches.sources import data_file, generated
from tamis.bench.files import read_documents, read_queries
from tamis.bench.measure import array, build
from tamis.workload import StockOptions, stock_messages, stock_subscriptions

FILES = 8
"""The number of files with messages; the first one alone is for what is too slow for all of them."""


@dataclass(frozen=True)
class SparkWorkload:
    """The figures of the project are made with the defaults. Files are below `TAMIS_DATA`."""

    documents: str = "nitf/docs-500.tar.gz"
    dtd: str = "nitf/nitf-2-5.dtd"
    seed: str = "1"
    queries: int = 150_000
    """Twice as many paths are generated, and of those that are rare the first ones used."""
    most: int = 1
    """A path is rare if it matches so many of the documents at most."""
    dense: str = "nitf/paths-153928-distinct.txt.gz"
    """Queries of which thousands match a message."""
    megabytes: int = 200
    """The documents are repeated until there is so much of them."""
    subscriptions: int = 1_000_000
    """Of the stock workload, to see what a worker needs for itself."""

    def messages(self) -> Sequence[bytes]:
        """The documents, once."""
        return read_documents(data_file(self.documents))

    @property
    def repeats(self) -> int:
        """How often each file of messages holds the documents."""
        return -(-self.megabytes * 1_000_000 // (sum(map(len, self.messages())) * FILES))

    def write_messages(self, folder: Path) -> None:
        """Files with `id` and `message`. No dictionary: each message is read as if it were new."""
        folder.mkdir()
        messages = array([*self.messages()] * self.repeats).cast(pa.binary())
        for number in range(FILES):
            ids = pa.array(range(number * len(messages), (number + 1) * len(messages)))
            table = pa.table({"id": ids, "message": messages})
            pq.write_table(table, folder / f"{number}.parquet", use_dictionary=False)

    def selective(self) -> list[str]:
        """Distinct paths that are rare in the documents, in the order they were generated."""
        path = data_file(self.documents)
        paths = generated(path, dtd=self.dtd, seed=self.seed, number=2 * self.queries, depth=10)
        index, _, _ = build(paths, self.messages())
        lines = targets(index, self.messages())
        matched = np.bincount(lines, minlength=len(paths) + 1)[1:]
        rare = np.flatnonzero(matched <= self.most)[: self.queries]
        return [paths[place] for place in rare]

    def dense_queries(self) -> Sequence[str]:
        """All of them."""
        return read_queries(data_file(self.dense))

    def stock(self) -> tuple[list[bytes], list[str]]:
        """Quotes, and subscriptions to them."""
        options = StockOptions(self.subscriptions, 10_000, min(10_000, self.subscriptions))
        return list(stock_messages(options, seed="1")), list(stock_subscriptions(options, seed="1"))


def targets(index: tamis.Index, messages: Sequence[bytes]) -> Any:
    """The targets of all messages, one after the other."""
    found: Any = index.targets(index.match_batch(array(messages)))
    return found.flatten().to_numpy().astype(np.int64)


def saved(queries: Sequence[str], messages: Sequence[bytes], folder: Path) -> tamis.Index:
    """An index of the queries, each under its line number, with a snapshot."""
    index, _, _ = build(queries, messages)
    index.snapshot(folder)
    return index
