"""Where a workload's documents and queries come from: files as they lie, archives, generators."""

import gzip
import os
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tamis.dtd_file import read_dtd_file
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


@cache
def read_documents(path: Path) -> tuple[bytes, ...]:
    """The XML files of a directory or a tar archive, in the order of their names.

    A directory without any file called `*.xml` is taken to hold documents only.
    """
    if path.is_dir():
        files = sorted(path.glob("*.xml")) or sorted(file for file in path.iterdir() if file.is_file())
        documents = {file.name: file.read_bytes() for file in files}
    else:
        documents = {}
        with tarfile.open(path) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None and member.name.endswith(".xml"):
                    documents[Path(member.name).name] = file.read()
    if not documents:
        raise FileNotFoundError(2, "there are no documents", str(path))
    return tuple(documents[name] for name in sorted(documents))


@cache
def read_queries(path: Path) -> tuple[str, ...]:
    """The lines of a file, also a gzipped one, that are not blank."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return tuple(line.strip("\r") for line in content.decode().split("\n") if line.strip())


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
