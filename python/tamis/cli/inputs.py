"""The inputs of `tamis match` and `tamis transform`: queries of a file, documents in batches."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from tamis.cli.namespaces import add_namespaces
from tamis.errors import marked

BATCH_BYTES = 16 << 20
"""Bytes of documents per kernel call."""


def add_input_arguments(command: argparse.ArgumentParser) -> None:
    """The flags for queries and documents."""
    command.add_argument("--queries", required=True, type=Path, metavar="FILE", help="one query per line")
    command.add_argument("--strict", action="store_true", help="exit with 2 if a query is refused")
    command.add_argument("documents", nargs="+", type=Path, metavar="DOC")
    add_namespaces(command)


def read_index(options: argparse.Namespace) -> tuple[tamis.Index, int]:
    """An index of the queries of a file, and the number of refused ones."""
    lines = options.queries.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    index = tamis.Index()
    return index, _load(index, options.queries, lines, options.namespaces)


def _load(index: tamis.Index, path: Path, lines: list[bytes], namespaces: dict[str, str] | None) -> int:
    """Load queries with their line numbers as targets; report and count the refused ones."""
    numbers: list[int] = []
    texts: list[str] = []
    refused: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode().strip("\r")
        except UnicodeDecodeError as error:
            refused[number] = f"the query is not UTF-8 (byte {error.start + 1})"
            continue
        if text.strip():
            numbers.append(number)
            texts.append(text)
    table = pa.table({"target": pa.array(numbers, pa.uint64()), "query": pa.array(texts, pa.large_string())})
    for row in index.load(table, namespaces=namespaces).to_pylist():
        at = row["row"]
        refused[numbers[at]] = f"{row['reason']}\n{marked(texts[at], row['line'], row['column'])}"
    for number, reason in sorted(refused.items()):
        print(f"{path}:{number}: {reason}", file=sys.stderr)
    return len(refused)


def read_documents(
    documents: list[Path],
) -> Iterator[tuple[int, list[Path], "pa.Array[Any]", dict[int, OSError]]]:
    """Batches of documents: count so far, paths, contents, and errors by place."""
    done = 0
    for paths in _batches(documents):
        contents: list[bytes | None] = []
        failures: dict[int, OSError] = {}
        for at, path in enumerate(paths):
            try:
                contents.append(path.read_bytes())
            except OSError as error:
                contents.append(None)
                failures[at] = error
        done += len(paths)
        yield done, paths, pa.array(contents, pa.large_binary()), failures


def _batches(paths: list[Path]) -> Iterator[list[Path]]:
    """Batches of about `BATCH_BYTES`."""
    group: list[Path] = []
    size = 0
    for path in paths:
        group.append(path)
        size += path.stat().st_size if path.is_file() else 0
        if size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
