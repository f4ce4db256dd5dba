"""Where a workload's documents and queries come from: the shared data, or generators."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benches.respelling import respelled
from tamis.bench.files import read_documents, read_queries
from tamis.sources.dtd_file import read_dtd_file
from tamis.workload import (
    DocumentOptions,
    Mix,
    Profile,
    QueryOptions,
    StockOptions,
    generate_documents,
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


def load(run: Mapping[str, Any], folder: Path) -> tuple[Sequence[bytes], Sequence[str]]:
    """The documents and queries that a run of a workload in the folder names.

    It has `stock`, `follow`, or `documents` and with them `queries` or `generate`; see `benches/README.md`.
    """
    if "follow" in run:
        return _following(folder, run["follow"], run["generate"])
    if "stock" in run:
        parameters = dict(run["stock"])
        seed = parameters.pop("seed")
        stock = StockOptions(**parameters)
        return list(stock_messages(stock, seed=seed)), list(stock_subscriptions(stock, seed=seed))
    path = data_file(run["documents"])
    documents = read_documents(path)
    if "queries" in run:
        return documents, read_queries(data_file(run["queries"]))
    queries = generated(path, **run["generate"])
    return documents, list(respelled(queries, seed=run["respell"])) if "respell" in run else queries


def _following(
    folder: Path, documents: Mapping[str, Any], queries: Mapping[str, Any]
) -> tuple[list[bytes], list[str]]:
    """Documents and queries that follow a DTD beside the workload, with numbers as values."""
    of_documents, of_queries = dict(documents), dict(queries)
    dtd = read_dtd_file(folder / of_documents.pop("dtd"))
    profile = Profile.even(dtd, values=of_documents.pop("values"))
    seed, mix = of_queries.pop("seed"), Mix(**of_queries.pop("mix", {}))
    return (
        list(generate_documents(dtd, profile, DocumentOptions(**of_documents), seed=seed)),
        list(generate_queries(dtd, profile, QueryOptions(mix=mix, **of_queries), seed=seed)),
    )


def generated(
    documents: Path, *, dtd: str, seed: str, mix: Mapping[str, float] | None = None, **parameters: Any
) -> list[str]:
    """Queries that follow a DTD and test values that occur in the documents."""
    options = QueryOptions(mix=Mix(**(mix or {})), **parameters)
    profile = Profile.observed(read_documents(documents))
    return list(generate_queries(read_dtd_file(data_file(dtd)), profile, options, seed=seed))
