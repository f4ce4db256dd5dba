"""Data sets of a catalog, with their versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tamis.model.hashed_file import File


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set to create; its records come with its first version."""

    name: str
    """As queries name it: letters, digits, `-`, `_` and `.`."""
    tenant: str = ""
    shared: bool = False
    """Whether the operator shares it with all tenants. Then it belongs to none."""
    key: str | None = None
    """The path of the value that identifies a record, such as `company/@symbol`; None: there is none."""
    indexed: tuple[str, ...] | None = None
    """The paths whose values are indexed; None: all."""
    source: str = ""
    """Where its records come from, for people."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The records of a data set at one time, as files of the store. It never changes."""

    number: int
    """From 1, in the order of the updates."""
    manifest: str
    """The file that lists its other files."""
    files: Mapping[str, File]
    """All its files, which other versions may have too."""
    records: int
    bytes: int
    """Of its files together."""
    source: str
    created: datetime


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set, as its users see it."""

    name: str
    tenant: str
    shared: bool
    key: str | None
    indexed: tuple[str, ...] | None
    source: str
    created: datetime
    current: DataVersion | None
    """The version that messages are joined with from now on; None before the first one is complete."""
    users: int = 0
    """How many subscriptions name it."""


@dataclass(frozen=True, slots=True)
class UsedData:
    """The version of a data set that a generation joins the messages of a tenant with."""

    tenant: str
    name: str
    version: int
    manifest: str
    files: Mapping[str, File] = field(default_factory=dict)
