"""A generation as files: which they are, how to know them, and which state of the catalog they show.

    generation-<number>.json        what is below
    generation-<number>.manifest    the kernel's own list (src/engine/snapshot.rs)
    <hash>.segment  <hash>.texts  <hash>.removed      the kernel's files
    <hash>.arrow                    subscriptions by number, or numbers that were removed

All but the first are there before it: a generation whose JSON is there is whole. The JSON has the size and
the hash of each other file, and a checksum of itself.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.model.version import Version
from tamis.storage.files import atomic_file

FORMAT = 4
"""Changes with the meaning of the JSON."""

FIRST_WITH_CHECKSUM = 3

_NAME = re.compile(r"generation-(\d+)\.json")


@dataclass(frozen=True, slots=True)
class File:
    """How to know a file again."""

    size: int
    hash: str

    @staticmethod
    def of(path: Path) -> "File":
        """The file as it is; BLAKE2b, 128 bits."""
        with path.open("rb") as file:
            return File.read(file)

    @staticmethod
    def read(file: Any) -> "File":
        """What is read from an open file."""
        digest, size = _digest(), 0
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
        return File(size, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation consists of."""

    number: int
    catalog: str
    """The identity of the catalog that it was made from."""
    version: Version
    """The catalog's version that it shows."""
    subscriptions: tuple[str, ...]
    """The files with its subscriptions by number, the largest first."""
    removed: str | None
    """The file with numbers that occur in those, but not in this generation any more."""
    files: Mapping[str, File]
    """All its files, but the one that this is written to."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The hash of each neighbour's table of routes in it, by link. Other links are sent everything."""
    routes: int = 0
    """How many of its targets are routes, and no subscriptions."""

    @staticmethod
    def name(number: int) -> str:
        """The name of the JSON."""
        return f"generation-{number}.json"

    @staticmethod
    def number_in(name: str) -> int | None:
        """The number in the name of a JSON; None if it is no such name."""
        found = _NAME.fullmatch(name)
        return None if found is None else int(found[1])

    @staticmethod
    def kernel_name(number: int) -> str:
        """The name of the kernel's list."""
        return f"generation-{number}.manifest"

    @staticmethod
    def parse(text: bytes, name: str, number: int) -> "Manifest":
        """What a JSON says, which has to be of generation `number`."""
        try:
            value = json.loads(text)
            written_checksum = value.pop("checksum", None)
            written = value["format"]
            if (written_checksum or written >= FIRST_WITH_CHECKSUM) and written_checksum != checksum(value):
                raise ValueError("its checksum is another")
            if value["number"] != number:
                raise ValueError(f"it is of generation {value['number']}")
            del value["format"]
            if written > FORMAT:
                raise StoreError("store-newer", f"{name} was written by a newer tamis; use that one")
            if written == 1:
                # Before versions had marks: it is nobody's.
                value["version"] = {"count": value["version"], "mark": ""}
            version = Version(**value.pop("version"))
            files = {file: File(**known) for file, known in value.pop("files").items()}
            subscriptions = tuple(value.pop("subscriptions"))
            return Manifest(**value, version=version, subscriptions=subscriptions, files=files)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError("store-damaged", f"{name} is no manifest of a generation: {error}") from error

    @staticmethod
    def read(directory: Path, number: int) -> "Manifest":
        """The manifest of a generation in a directory."""
        path = directory / Manifest.name(number)
        try:
            text = path.read_bytes()
        except FileNotFoundError as error:
            reason = f"there is no generation {number} in {directory}"
            raise StoreError("no-generation", reason) from error
        return Manifest.parse(text, str(path), number)

    def write(self, directory: Path) -> None:
        """Publish the generation: write its manifest atomically."""
        value = {"format": FORMAT} | asdict(self)
        value["checksum"] = checksum(value)
        with atomic_file(directory / Manifest.name(self.number)) as draft:
            draft.write_text(json.dumps(value, indent=1, sort_keys=True), "utf-8")


def checksum(value: Mapping[str, Any]) -> str:
    """The hash of a JSON without its checksum."""
    digest = _digest()
    digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


def _digest() -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=16)


def kernel_files(directory: Path, number: int) -> list[str]:
    """The kernel's files of a generation, its list included."""
    names = [Manifest.kernel_name(number)]
    for line in (directory / names[0]).read_text("utf-8").splitlines():
        match line.split(" "):
            case ["segment", segment, removed]:
                names += [f"{segment}.segment", f"{segment}.texts"]
                names += [f"{removed}.removed"] if removed != "-" else []
    return names


def renumber(directory: Path, number: int, other: int) -> int:
    """Give the kernel's files of a generation another number as well."""
    text = (directory / Manifest.kernel_name(number)).read_text("utf-8")
    with atomic_file(directory / Manifest.kernel_name(other)) as draft:
        draft.write_text(text.replace(f"generation {number}\n", f"generation {other}\n", 1), "utf-8")
    return other
