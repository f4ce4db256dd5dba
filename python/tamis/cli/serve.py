"""`tamis serve`: run the service until a signal."""

import argparse
import sys
from pathlib import Path

from tamis.cli.data import REFRESH_FLAGS
from tamis.cli.processes import child_command
from tamis.extras import require
from tamis.settings import ENVIRONMENT, load_settings
from tamis.storage.files import Lock, set_umask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each environment variable."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    for variable, name in ENVIRONMENT.items():
        # Flags of the service itself have no prefix.
        flag = f"--{name.removeprefix('serve.').replace('.', '-').replace('_', '-')}"
        parser.add_argument(flag, dest=name, metavar="VALUE", help=f"or {variable}")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the service. The first signal lets requests and the running batch finish."""
    require("serve")
    # Slow to import; other commands do not need them.
    from tamis.catalog import Catalog
    from tamis.service.app import application
    from tamis.service.background.supervisor import Supervisor
    from tamis.service.errors import ServiceError
    from tamis.service.logs import log_as_json
    from tamis.service.server import Server
    from tamis.service.service import CATALOG_BUSY_SECONDS, Service

    flags = {name: getattr(options, name) for name in ENVIRONMENT.values()}
    settings = load_settings(options.config, flags)
    set_umask(int(settings.umask, 8))
    lock = Lock(settings.state / "serve.lock")
    if not lock.try_acquire():
        reason = f"another service runs with the state in {settings.state}; stop it first"
        raise ServiceError("service-running", reason)
    try:
        with Catalog(settings.catalog, busy_seconds=CATALOG_BUSY_SECONDS) as catalog:
            log_as_json()
            if not catalog.tokens.list():
                print(
                    "tamis: there is no token yet, so the service cannot be used. Create the first one:\n"
                    "  tamis tokens create --role admin",
                    file=sys.stderr,
                )
            supervisor = Supervisor(_job(options)) if settings.serve.job else None
            refresher = Supervisor(_refresh(options)) if settings.data else None
            service = Service(settings, catalog, supervisor, refresher)
            Server(application(service), settings.serve).run()
    finally:
        lock.release()
    return 0


def _refresh(options: argparse.Namespace) -> list[str]:
    """The command that reads the data of the settings again and again. It inherits the environment."""
    command = child_command("data", "refresh")
    if options.config is not None:
        command += ["--config", str(options.config)]
    for name in REFRESH_FLAGS:
        value = getattr(options, name)
        command += [] if value is None else [f"--{name}", value]
    return command


def _job(options: argparse.Namespace) -> list[str]:
    """The command of the job, with the same flags. It inherits the environment."""
    command = child_command("run")
    if options.config is not None:
        command += ["--config", str(options.config)]
    for name in ENVIRONMENT.values():
        value = getattr(options, name)
        if value is not None and not name.startswith("serve."):
            command += [f"--{name.replace('.', '-').replace('_', '-')}", value]
    return command
