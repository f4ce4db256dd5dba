"""The manifest of a generation: names, sizes and hashes of its files, and its version of the catalog.

    generation-<number>.json        the manifest
    generation-<number>.manifest    the kernel's own list (src/engine/snapshot.rs)
    <hash>.segment  <hash>.texts  <hash>.removed      the kernel's files
    <hash>.arrow                    subscriptions by number, or numbers that were removed

The manifest is written last, so a generation with a manifest is complete. The manifest has the size and the
hash of each other file, and a checksum of itself.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.model.data_set import UsedData
from tamis.model.hashed_file import File as File
from tamis.model.version import Version
from tamis.shards.layout import Layout
from tamis.storage.files import atomic_file

FORMAT = 5
"""The version of the manifest's format; increment it when the meaning of a field changes."""

FIRST_WITH_CHECKSUM = 3

_NAME = re.compile(r"generation-(\d+)\.json")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a manifest: what a generation consists of."""

    number: int
    catalog: str
    """The identity of the catalog that it was compiled from."""
    version: Version
    """The version of the catalog that it was compiled from."""
    subscriptions: tuple[str, ...]
    """The files with its subscriptions by number, the largest first."""
    removed: str | None
    """The file with the removed numbers that are still in those files; None if there are none."""
    files: Mapping[str, File]
    """All its files, except the manifest itself."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The hash of each neighbour's table of routes in it, by link. Other links are sent everything."""
    routes: int = 0
    """How many of its targets are routes, and no subscriptions."""
    data: tuple[UsedData, ...] = ()
    """The local data that its subscriptions name, by tenant and name."""
    layout: Layout | None = None
    """Its shards; None if there is one."""

    @property
    def all_files(self) -> Mapping[str, File]:
        """Its files and those of its local data, which others write."""
        found = dict(self.files)
        for one in self.data:
            found |= one.files
        return found

    @staticmethod
    def name(number: int) -> str:
        """The file name of a manifest."""
        return f"generation-{number}.json"

    @staticmethod
    def number_in(name: str) -> int | None:
        """The generation number in a manifest's file name; None for any other name."""
        found = _NAME.fullmatch(name)
        return None if found is None else int(found[1])

    @staticmethod
    def kernel_name(number: int) -> str:
        """The name of the kernel's list."""
        return f"generation-{number}.manifest"

    @staticmethod
    def parse(text: bytes, name: str, number: int) -> "Manifest":
        """Parse a manifest; `StoreError` if it is damaged or of another generation than `number`."""
        try:
            value = json.loads(text)
            written_checksum = value.pop("checksum", None)
            written = value["format"]
            if (written_checksum or written >= FIRST_WITH_CHECKSUM) and written_checksum != checksum(value):
                raise ValueError("its checksum does not match its content")
            if value["number"] != number:
                raise ValueError(f"it belongs to generation {value['number']}")
            del value["format"]
            if written > FORMAT:
                raise StoreError("store-newer", f"{name} was written by a newer tamis; use that one")
            if written == 1:
                # Format 1 had no marks. The empty mark matches no version of a catalog.
                value["version"] = {"count": value["version"], "mark": ""}
            version = Version(**value.pop("version"))
            files = {file: File(**known) for file, known in value.pop("files").items()}
            subscriptions = tuple(value.pop("subscriptions"))
            layout = Layout.parse(value.pop("layout", None))
            data = tuple(map(_used_data, value.pop("data", ())))
            return Manifest(
                **value,
                version=version,
                subscriptions=subscriptions,
                files=files,
                data=data,
                layout=layout,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError("store-damaged", f"{name} is not a valid manifest: {error}") from error

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
    """The checksum of a manifest, computed without its field `checksum`."""
    digest = _digest()
    digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


def _digest() -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=16)


def _used_data(value: Mapping[str, Any]) -> UsedData:
    files = {name: File(**file) for name, file in value["files"].items()}
    return UsedData(value["tenant"], value["name"], value["version"], value["manifest"], files)


def kernel_files(directory: Path, number: int) -> list[str]:
    """The kernel's files of a generation, including its list."""
    names = [Manifest.kernel_name(number)]
    for line in (directory / names[0]).read_text("utf-8").splitlines():
        match line.split(" "):
            case ["segment", segment, removed]:
                names += [f"{segment}.segment", f"{segment}.texts"]
                names += [f"{removed}.removed"] if removed != "-" else []
    return names


def renumber(directory: Path, number: int, other: int) -> int:
    """Write the kernel's list of a generation under another number too."""
    text = (directory / Manifest.kernel_name(number)).read_text("utf-8")
    with atomic_file(directory / Manifest.kernel_name(other)) as draft:
        draft.write_text(text.replace(f"generation {number}\n", f"generation {other}\n", 1), "utf-8")
    return other
