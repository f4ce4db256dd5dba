"""The service of the demo: in a temporary folder, with a token for each client."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tamis.catalog import Catalog
from tamis.cli.processes import LOG, free_port, launched
from tamis.model.token import NewToken, Role

SETTINGS = """
interval = 0.2
[spark]
master = "local[2]"
[serve]
port = {port}
"""

STOPPING_S = 60.0
"""Seconds that the service gets to stop."""


@dataclass(frozen=True)
class Broker:
    """The URL of the service and the tokens."""

    url: str
    log: Path
    admin: str
    feed: str
    subscribers: dict[str, str]
    """Tokens by name of the subscriber."""


@contextmanager
def serving(subscribers: Iterable[str]) -> Iterator[Broker]:
    """Run `tamis serve`; it may not answer yet."""
    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as name:
        folder, port = Path(name), free_port()
        (folder / "tamis.toml").write_text(SETTINGS.format(port=port))
        with Catalog(str(folder / "tamis.db")) as catalog:

            def token(role: Role, subscriber: str | None = None) -> str:
                return catalog.tokens.create(NewToken("demo", role, "", subscriber))[1]

            tokens = {one: token(Role.SUBSCRIBER, one) for one in subscribers}
            broker = Broker(
                f"http://127.0.0.1:{port}", folder / LOG, token(Role.ADMIN), token(Role.PUBLISHER), tokens
            )
        with launched(folder, "serve") as process:
            yield broker
            process.terminate()
            process.wait(STOPPING_S)
