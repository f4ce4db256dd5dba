"""The service on a free port in this process, and HTTP clients for it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from tamis.catalog import Catalog
from tamis.model.token import NewToken, Role
from tamis.service.app import application
from tamis.service.server import Server
from tamis.service.service import CATALOG_BUSY_SECONDS, Service
from tamis.settings import ServeSettings, Settings, load_settings
from tests.helpers.servers import free_port
from tests.helpers.waiting import until

TENANTS = ("", "other")

SOURCES = """
[[source]]
name = "inbox"
path = "inbox"

[[source]]
name = "others"
path = "others"
tenant = "other"
"""


@dataclass
class Served:
    """A service that runs."""

    settings: Settings
    catalog: Catalog
    service: Service
    url: str
    stack: ExitStack
    secrets: dict[tuple[Role, str, str | None], str] = field(default_factory=dict)

    def secret(self, role: Role, tenant: str = "", subscriber: str | None = None, **limits: Any) -> str:
        """The secret of a token for a role; one for each, unless it has limits."""
        if limits:
            return self.catalog.tokens.create(NewToken("test", role, tenant, subscriber, **limits))[1]
        key = (role, tenant, subscriber)
        if key not in self.secrets:
            self.secrets[key] = self.catalog.tokens.create(NewToken("test", *key))[1]
        return self.secrets[key]

    def client(
        self, role: Role = Role.ADMIN, tenant: str = "", subscriber: str | None = None, **limits: Any
    ) -> httpx.Client:
        """A client with a token for a role."""
        if role is Role.SUBSCRIBER and subscriber is None:
            subscriber = "ann"
        return self.plain({"Authorization": f"Bearer {self.secret(role, tenant, subscriber, **limits)}"})

    def plain(self, headers: dict[str, str] | None = None) -> httpx.Client:
        """A client as anybody has one."""
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)
        return self.stack.enter_context(client)


def settings_in(folder: Path, more: str = SOURCES, catalog: str | None = None, **serve: Any) -> Settings:
    """The settings of a service in a folder."""
    (folder / "tamis.toml").write_text(more)
    settings = load_settings(folder / "tamis.toml", {"catalog": catalog}, environment={})
    chosen = {"port": free_port(), "rate": 100_000, "job": False, **serve}
    return replace(settings, serve=replace(ServeSettings(), **chosen))


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """A service, stopped afterwards."""
    with ExitStack() as stack:
        catalog = stack.enter_context(Catalog(settings.catalog, busy_seconds=CATALOG_BUSY_SECONDS))
        service = Service(settings, catalog)
        server = Server(application(service), settings.serve)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), "the service")
            assert server.started
            url = f"http://{settings.serve.host}:{settings.serve.port}"
            yield Served(settings, catalog, service, url, stack)
        finally:
            server.should_exit = True
            thread.join()
