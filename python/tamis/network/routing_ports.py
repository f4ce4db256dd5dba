"""What routing needs from outside: the catalog, generations and links, as it uses them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tamis.model.version import Version
from tamis.network.tables import TableVersion, TenantRow


@dataclass(frozen=True, slots=True)
class Shown:
    """What a generation shows."""

    catalog: str
    """The identity of the catalog."""
    version: Version
    tables: Mapping[str, str]
    """The hash of each neighbour's table of routes, by link."""


class Port(Protocol):
    """An end of a link, to send notices by."""

    @property
    def epoch(self) -> str:
        """The log that notices are sent in."""

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be sent that roots have to wait."""

    @property
    def in_vain(self) -> int:
        """How many messages of the neighbour nobody wanted."""

    def send(self, notice: bytes) -> None:
        """Publish a notice; `LinkError` if that fails."""


class Changes(Protocol):
    """What changed in a catalog since a version."""

    @property
    def catalog(self) -> str: ...
    @property
    def version(self) -> Version: ...
    @property
    def since(self) -> Version | None: ...
    @property
    def removed(self) -> Sequence[int]: ...
    @property
    def added(self) -> Iterable[Any]:
        """Record batches with number, id, revision, tenant, query and prefixes."""

    @property
    def tables(self) -> Mapping[str, TableVersion]: ...


class RouteTables(Protocol):
    """The tables of routes of a catalog."""

    def tables(self) -> Mapping[str, TableVersion]: ...
    def keep(self, links: Collection[str]) -> None: ...
    def establish(self, versions: Mapping[str, int]) -> None: ...
    def replace(self, link: str, version: TableVersion, wanted: Collection[TenantRow]) -> bool: ...
    def change(
        self,
        link: str,
        since: TableVersion,
        version: TableVersion,
        added: Collection[TenantRow],
        removed: Collection[TenantRow],
    ) -> bool: ...


class Catalog(Protocol):
    """A catalog of subscriptions and routes."""

    @property
    def routes(self) -> RouteTables: ...
    def changes(self, since: Version | None) -> AbstractContextManager[Changes]: ...
