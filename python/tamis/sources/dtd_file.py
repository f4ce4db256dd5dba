"""Read DTDs from files."""

from pathlib import Path

from tamis.engine import read_dtd
from tamis.model.dtd import Dtd
from tamis.schema import Schema


def read_dtd_file(path: Path) -> Dtd:
    """Read a DTD file; its external parameter entities are files, by paths relative to it."""

    def resolve(system: str) -> bytes | None:
        file = path.parent / system
        return file.read_bytes() if file.is_file() else None

    return read_dtd(path.read_bytes(), resolve)


def read_schema(path: str | Path | None) -> Schema | None:
    """The schema of a DTD file; None if no file is given."""
    return None if path is None else Schema(read_dtd_file(Path(path)))
