"""Reads documents and queries for measurements from plain files and archives."""

import gzip
import tarfile
from functools import cache
from pathlib import Path

from tamis.model.query_file import queries_of_file


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
    """The queries of a file, also a gzipped one."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return tuple(text.decode() for _, text in queries_of_file(content))
