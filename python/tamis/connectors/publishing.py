"""A directory that batches of rows are published to, each exactly once.

    manifests/<checkpoint>-<batch>.json                             the files of a batch; no others count
    tenants/<tenant>/<checkpoint>-<batch>/<name>.<attempt>.<form>   the files themselves

Workers write the files of an attempt at a batch, the driver then publishes it by its manifest, which appears
at once and whole. Files of an attempt that came to nothing have names of their own: a worker that has not heard
of the end of its driver, and still writes, touches nothing that is published.
"""

import hashlib
import heapq
import json
import os
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from tamis.batch import Batch
from tamis.connectors.filesystem import Files, draft_in, files_at, sink_told
from tamis.connectors.forms import Form, Writer, form_of
from tamis.errors import SinkError

MANIFESTS = "manifests"
TENANTS = "tenants"

YOUNG = 3600.0
"""Seconds for which files that no manifest names are left alone: they may be of a job that is running."""

NAME_BYTES = 150
"""Names are cut to so many bytes; file systems have at most 255, and something is to be added."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a batch."""

    path: str
    """From the root of the directory."""
    rows: int
    bytes: int
    keys: Mapping[str, str]
    """What all its rows have in common, by column: the tenant, and the subscriber in some forms."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Publication:
    """What a manifest says of a batch."""

    batch: Batch
    time: str
    """When it was published, in ISO 8601."""
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        value = json.loads(text)
        parts = tuple(Part(**part) for part in value["parts"])
        return cls(Batch(**value["batch"]), value["time"], parts)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at writing a batch; it travels to the workers."""

    files: Files
    batch: Batch
    token: str
    """What its names have, and those of no other attempt."""
    schema: pa.Schema
    keys: tuple[str, ...]
    form: Form

    def write(self, partition: int, batches: Iterable[pa.RecordBatch]) -> list[Part]:
        """Write the rows of a partition, which are sorted by the keys; each combination gets a file.

        Whoever writes the same partition again gives the files the same names and the same rows.
        """
        drafts: dict[str, str] = {}
        parts: list[Part] = []
        with sink_told(self.files.url):
            try:
                for keys, group in _groups(batches, self.schema, self.keys):
                    folder = _folder(keys[0], self.batch)
                    # A subscriber's rows are all in one partition, a tenant's are not.
                    name = safe_name(keys[-1]) if len(keys) > 1 else f"part-{partition:05}"
                    path, draft = f"{folder}/{name}.{self.token}.{self.form.suffix}", draft_in(folder)
                    drafts[draft] = path
                    named = dict(zip(self.keys, keys, strict=True))
                    rows, size = self._write(draft, named, group)
                    parts.append(Part(path, rows, size, named))
                self.files.settle(drafts)
            except BaseException:
                # Room for others, above all where there was none.
                for draft in drafts:
                    self.files.remove(draft)
                raise
        return parts

    def _write(self, draft: str, keys: Mapping[str, str], group: Iterable[pa.RecordBatch]) -> tuple[int, int]:
        rows = 0
        file = self.files.create(draft)
        with file:
            writer: Writer = self.form.writer(file, self.schema, {"batch": str(self.batch), **keys})
            for batch in group:
                writer.write(batch)
                rows += batch.num_rows
            writer.finish()
        return rows, self.files.size(draft) or 0


class PublishedDirectory:
    """Rows of one schema, in files of one form: by tenant, and by more keys where the form wants it."""

    def __init__(
        self, url: str | os.PathLike[str], schema: pa.Schema, form: Form, keys: tuple[str, ...] = ("tenant",)
    ) -> None:
        """A directory, or a URL that `pyarrow.fs` knows. The keys are columns, the tenant first."""
        self.files = files_at(url)
        self.url = self.files.url
        self.schema = schema
        self.keys = keys
        self._form = form

    def attempt(self, batch: Batch) -> Attempt:
        """Begin to write a batch."""
        return Attempt(self.files, batch, uuid.uuid4().hex[:8], self.schema, self.keys, self._form)

    def publish(self, attempt: Attempt, parts: Collection[Part]) -> Publication:
        """Make the parts of an attempt count, all at once; safe, whatever happens to the machine then.

        A batch that is published already stays as it is.
        """
        with sink_told(self.url):
            for part in parts:
                if self.files.size(part.path) is None:
                    reason = f"{self.url}: a worker wrote {part.path}, and it is not here"
                    raise SinkError("sink-not-shared", f"{reason}; name a directory that all hosts share")
            ordered = tuple(sorted(parts, key=lambda part: part.path))
            made = Publication(attempt.batch, datetime.now(UTC).isoformat(timespec="microseconds"), ordered)
            if not self.files.place(_manifest(attempt.batch), made.to_json()):
                made = self._read_manifest(attempt.batch)
        self.tidy(made)
        return made

    def tidy(self, publication: Publication) -> None:
        """Remove what other attempts at a batch that is published have left."""
        used = {part.path for part in publication.parts}
        # Each attempt is at the same rows, so it has the same tenants.
        with sink_told(self.url):
            for tenant in {part.keys["tenant"] for part in publication.parts}:
                self._remove_from(_folder(tenant, publication.batch), keep=used)

    def discard(self, attempt: Attempt) -> None:
        """Remove what an attempt has written."""
        with sink_told(self.url):
            for tenant in self.files.list(TENANTS):
                folder = f"{TENANTS}/{tenant.name}/{attempt.batch}"
                for entry in self.files.list(folder):
                    if f".{attempt.token}." in entry.name:
                        self.files.remove(f"{folder}/{entry.name}")

    def batches(self) -> list[Batch]:
        """What is published: in the order of a checkpoint, and of time between checkpoints."""
        by_checkpoint: dict[str, list[tuple[int, float]]] = {}
        with sink_told(self.url):
            entries = self.files.list(MANIFESTS)
        for entry in entries:
            batch = _batch_of(entry.name)
            if batch is not None:
                by_checkpoint.setdefault(batch.checkpoint, []).append((batch.number, entry.changed))
        lines = (
            [(changed, Batch(checkpoint, number)) for number, changed in sorted(found)]
            for checkpoint, found in by_checkpoint.items()
        )
        return [batch for _, batch in heapq.merge(*lines, key=lambda line: line[0])]

    def published(self) -> Iterator[Publication]:
        """All publications, in the order of `batches`."""
        return map(self._read_manifest, self.batches())

    def publication(self, batch: Batch) -> Publication | None:
        """What is published of a batch; None if nothing is."""
        with sink_told(self.url):
            return None if self.files.size(_manifest(batch)) is None else self._read_manifest(batch)

    def read(self, publication: Publication, *, tenant: str | None = None) -> pa.Table:
        """The rows of a publication, of all tenants or one."""
        return pa.Table.from_batches(list(self.read_batches(publication, tenant=tenant)), self.schema)

    def read_batches(
        self, publication: Publication, *, tenant: str | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a publication piece by piece, with all columns or some."""
        names = self.schema.names if columns is None else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        for part in publication.parts:
            if tenant is None or part.keys["tenant"] == tenant:
                with sink_told(f"{self.url}/{part.path}"), self.files.open(part.path) as file:
                    yield from form_of(part.path).read(file, schema)

    def sweep(self, keep: Collection[Batch], *, young: float = YOUNG) -> list[str]:
        """Remove the files of batches that came to nothing, but of those to keep; what was removed.

        What changed in the last `young` seconds is left alone: it may be of another job.
        """
        names = {str(batch) for batch in (*self.batches(), *keep)}
        limit = time.time() - young
        with sink_told(self.url):
            removed = [
                f"{TENANTS}/{tenant.name}/{entry.name}"
                for tenant in self.files.list(TENANTS)
                for entry in self.files.list(f"{TENANTS}/{tenant.name}")
                if entry.name not in names and entry.changed <= limit
            ]
            for path in removed:
                self.files.remove(path)
        return removed

    def _remove_from(self, folder: str, keep: Collection[str]) -> None:
        for entry in self.files.list(folder):
            path = f"{folder}/{entry.name}"
            if path not in keep:
                self.files.remove(path)

    def _read_manifest(self, batch: Batch) -> Publication:
        with sink_told(self.url), self.files.open(_manifest(batch)) as file:
            text: bytes = file.read()
        try:
            return Publication.from_json(text)
        except (ValueError, TypeError, KeyError) as error:
            reason = f"{self.url}/{_manifest(batch)} is no manifest: {error}; restore it or remove it"
            raise SinkError("bad-manifest", reason) from error


def _folder(tenant: str, batch: Batch) -> str:
    return f"{TENANTS}/{safe_name(tenant)}/{batch}"


def _manifest(batch: Batch) -> str:
    return f"{MANIFESTS}/{batch}.json"


def _batch_of(name: str) -> Batch | None:
    """The batch whose manifest has a name."""
    checkpoint, _, number = name.removesuffix(".json").rpartition("-")
    is_manifest = checkpoint and number.isdecimal() and name.endswith(".json") and not name.startswith(".")
    return Batch(checkpoint, int(number)) if is_manifest else None


def safe_name(name: str) -> str:
    """A name as one of a file: two names never give one, whatever they are, and most are as they were."""
    if not name:
        return "~"
    # Names that begin with these are hidden from many readers of directories.
    hidden = name[0] in "._"
    quoted = ("%%%02X" % ord(name[0]) if hidden else "") + quote(name[hidden:], safe="").replace("~", "%7E")
    if len(quoted) <= NAME_BYTES:
        return quoted
    return f"{quoted[: NAME_BYTES - 40]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _groups(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Iterator[pa.RecordBatch]]]:
    """Runs of rows with the same keys, each as it comes; a run is taken before the next is asked for."""
    pieces = _runs(batches, schema, keys)
    piece = next(pieces, None)
    while piece is not None:
        key = piece[0]

        def group(key: tuple[str, ...] = key) -> Iterator[pa.RecordBatch]:
            nonlocal piece
            while piece is not None and piece[0] == key:
                yield piece[1]
                piece = next(pieces, None)

        yield key, group()


def _runs(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
    """Each batch cut where a key changes."""
    for given in batches:
        if given.num_rows == 0:
            continue
        batch = given.select(schema.names).cast(schema)
        columns: list[Any] = [batch.column(key) for key in keys]
        change = np.zeros(batch.num_rows - 1, bool)
        for column in columns:
            codes = column.dictionary_encode().indices.to_numpy()
            change |= codes[1:] != codes[:-1]
        ends = [0, *(np.flatnonzero(change) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(ends):
            yield tuple(column[start].as_py() for column in columns), batch.slice(start, end - start)
