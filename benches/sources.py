"""Where a workload's documents and queries come from: the shared data, or generators."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.bench.files import read_documents, read_queries
from tamis.sources.dtd_file import read_dtd_file
from tamis.workload import (
    Profile,
    QueryOptions,
    StockOptions,
    generate_queries,
    stock_messages,
    stock_subscriptions,
)


class NoDataError(Exception):
    """The data that a workload names is not on this machine."""


def data_file(name: str) -> Path:
    """A file of the shared data, which is no part of the project."""
    folder = os.environ.get("TAMIS_DATA")
    if folder is None:
        raise NoDataError(f"{name}: set TAMIS_DATA to the folder with the shared data")
    path = Path(folder) / name
    if not path.exists():
        raise NoDataError(f"{path} does not exist")
    return path


def load(run: Mapping[str, Any]) -> tuple[Sequence[bytes], Sequence[str]]:
    """The documents and queries that a run of a workload names.

    It has `stock`, or `documents` and with them `queries` or `generate`; see `benches/README.md`.
    """
    if "stock" in run:
        parameters = dict(run["stock"])
        seed = parameters.pop("seed")
        stock = StockOptions(**parameters)
        return list(stock_messages(stock, seed=seed)), list(stock_subscriptions(stock, seed=seed))
    path = data_file(run["documents"])
    documents = read_documents(path)
    if "queries" in run:
        return documents, read_queries(data_file(run["queries"]))
    return documents, generated(path, **run["generate"])


def generated(documents: Path, *, dtd: str, seed: str, **parameters: Any) -> list[str]:
    """Queries that follow a DTD and test values that occur in the documents."""
    options = QueryOptions(**parameters)
    profile = Profile.observed(read_documents(documents))
    return list(generate_queries(read_dtd_file(data_file(dtd)), profile, options, seed=seed))
