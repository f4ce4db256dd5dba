"""The database of a catalog: connections by URL, migrations, transactions, retries."""

import math
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError

from tamis.catalog import schema
from tamis.errors import CatalogError
from tamis.model.backoff import Backoff
from tamis.model.version import Version
from tamis.storage.files import create_private

Result = TypeVar("Result")

ATTEMPTS = 4
"""Attempts of a transaction when the connection is lost, with exponential backoff."""

PAUSE = 0.2
"""Seconds before the second attempt; doubles each time."""

BUSY_SECONDS = 30
"""Busy timeout of SQLite, for other writers; `?timeout=` in the URL overrides it for other processes."""

MAX_CONNECTIONS = 60
"""Of PostgreSQL's pool: more than the service has threads, so that no thread waits for a connection."""

MIGRATION_LOCK = 0x74616D6973
"""The PostgreSQL advisory lock held during a migration."""

VERSION_TABLE = "catalog_schema"
"""Alembic's version table. Not its usual name: other programs may use the same database."""


@dataclass(slots=True)
class WriteTransaction:
    """A write transaction: its version, and the counter of subscription numbers."""

    connection: Connection
    version: int
    number: int
    now: int
    """Microseconds since 1970."""
    changed: bool = field(default=False, init=False)
    """False: nothing to commit, and no version is used up."""

    def next_number(self) -> int:
        """A subscription number that was never used."""
        self.number += 1
        return self.number


class Database:
    """The database of a catalog, SQLite or PostgreSQL."""

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS) -> None:
        self._url = _parse_url(url)
        self._engine = _create_engine(self._url, busy_seconds)
        self._busy_seconds = busy_seconds
        # SQLite allows one writer; others poll. Threads of this process queue at a lock instead.
        one_writer = self._url.get_backend_name() == "sqlite"
        self._writer_lock = threading.Lock() if one_writer else None
        try:
            self._with_retries(self._migrate)
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def write(self, work: Callable[[WriteTransaction], Result]) -> Result:
        """Run `work` in a transaction that makes a new version. Writers are serialised.

        `work` must be idempotent: it runs again if the connection is lost, even during the commit.
        """

        def attempt() -> Result:
            with self._writing(), self._engine.connect().execution_options(writes=True) as connection:
                with connection.begin() as scope:
                    row = schema.catalog.c
                    increment = update(schema.catalog).values(version=row.version + 1)
                    version, number = connection.execute(increment.returning(row.version, row.number)).one()
                    transaction = WriteTransaction(connection, version, number, time.time_ns() // 1000)
                    result = work(transaction)
                    if transaction.number != number:
                        connection.execute(update(schema.catalog).values(number=transaction.number))
                    if transaction.changed:
                        new_version = {"version": version, "mark": secrets.token_hex(8)}
                        connection.execute(insert(schema.versions), [new_version])
                    else:
                        scope.rollback()
                return result

        return self._with_retries(attempt)

    def write_unversioned(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction that makes no version: for tables that no generation depends on.

        PostgreSQL does not serialise these. `work` must be idempotent, as in `write`.
        """

        def attempt() -> Result:
            with (
                self._writing(),
                self._engine.connect().execution_options(writes=True) as connection,
                connection.begin(),
            ):
                return work(connection)

        return self._with_retries(attempt)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on one snapshot of the catalog."""

        def attempt() -> Result:
            with self._engine.connect() as connection, connection.begin():
                return work(connection)

        return self._with_retries(attempt)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A snapshot of the catalog to stream from; failures on the way are not retried."""
        connection = self._with_retries(self._engine.connect)
        with self._catalog_errors(), connection, connection.begin():
            yield connection

    def compact(self, count: int) -> None:
        """Delete the versions before a known one, and the removals up to it."""

        def work(connection: Connection) -> None:
            versions, removals = schema.versions, schema.removals
            if connection.execute(select(versions).where(versions.c.version == count)).first() is not None:
                connection.execute(removals.delete().where(removals.c.version <= count))
                connection.execute(versions.delete().where(versions.c.version < count))

        self.write_unversioned(work)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Wait for the other writers of this process, no longer than SQLite waits for those of others."""
        lock = self._writer_lock
        if lock is None:
            yield
            return
        if not lock.acquire(timeout=self._busy_seconds):
            raise _locked(self._url.render_as_string(hide_password=True))
        try:
            yield
        finally:
            lock.release()

    def _with_retries(self, work: Callable[[], Result]) -> Result:
        with self._catalog_errors():
            backoff = Backoff(PAUSE, math.inf)
            for _ in range(1, ATTEMPTS):
                try:
                    return work()
                except DBAPIError as error:
                    if not _transient(error):
                        raise
                time.sleep(backoff.next())
            return work()

    @contextmanager
    def _catalog_errors(self) -> Iterator[None]:
        """Raise database errors as `CatalogError`, with what to do about them."""
        try:
            yield
        except SQLAlchemyError as error:
            shown = self._url.render_as_string(hide_password=True)
            raise _catalog_error(error, shown) from error

    def _migrate(self) -> None:
        with self._engine.connect() as connection:
            found = _schema_of(connection)
        if found == schema.NEWEST:
            return
        # Slow to import, and rarely needed.
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        # A percent sign would start an interpolation.
        folder = str(Path(__file__).parent / "migrations").replace("%", "%%")
        config.set_main_option("script_location", folder)
        with self._engine.connect().execution_options(writes=True) as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
            # Another process may have migrated meanwhile.
            found = _schema_of(connection)
            known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
            if found is not None and found not in known:
                raise CatalogError(
                    "catalog-newer",
                    f"the catalog has schema {found}, this tamis knows {schema.NEWEST}: "
                    "use the tamis that wrote it, or a newer one",
                )
            config.attributes.update(connection=connection, version_table=VERSION_TABLE)
            command.upgrade(config, "head")


def _parse_url(url: str) -> URL:
    """The URL of a database; a bare path is an SQLite file."""
    if "://" not in url:
        return URL.create("sqlite+pysqlite", database=url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise CatalogError("catalog-url", f"{url} is not a database URL") from error
    drivers = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
    driver = drivers.get(parsed.get_backend_name())
    if driver is None or (driver.startswith("sqlite") and parsed.database in (None, "", ":memory:")):
        shown = parsed.render_as_string(hide_password=True)
        reason = f"{shown}: a catalog is sqlite:///FILE or postgresql://USER@HOST/NAME"
        raise CatalogError("catalog-url", reason)
    return parsed.set(drivername=driver)


def _create_engine(url: URL, busy_seconds: float) -> Engine:
    try:
        if url.get_backend_name() == "sqlite":
            # It has secrets and payloads. SQLite gives its -wal and -shm files the same permissions.
            if url.database and not url.database.startswith("file:"):
                create_private(Path(url.database))
            connect_args = {} if "timeout" in url.query else {"timeout": busy_seconds}
            engine = create_engine(url, connect_args=connect_args)
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        connect_args = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
        # Readers use REPEATABLE READ: one snapshot per transaction. Writers use READ COMMITTED: they
        # queue at the one row that all of them update first; REPEATABLE READ would fail instead.
        engine = create_engine(
            url, connect_args=connect_args, pool_pre_ping=True, pool_size=5, max_overflow=MAX_CONNECTIONS - 5
        )
        event.listen(engine, "begin", _begin_postgresql)
        return engine
    except ModuleNotFoundError as error:
        reason = "for PostgreSQL, install tamis with its extra: pip install 'tamis[postgres]'"
        raise CatalogError("no-driver", reason) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise CatalogError("catalog-url", f"{url.render_as_string()}: {error}") from error


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # Explicit BEGIN instead of the driver's implicit transactions.
    connection.isolation_level = None
    _enter_wal(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging.

    SQLite ignores its busy timeout here and does not wait for other connections: two processes that open a
    new file at the same time would see "database is locked".
    """
    (milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
    end = time.monotonic() + milliseconds / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    # Upgrading a read transaction to a write fails at once; BEGIN IMMEDIATE waits.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _schema_of(connection: Connection) -> str | None:
    """The last migration of a database; None if it has no catalog yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return found


def identity_and_version(connection: Connection) -> tuple[str, Version]:
    """The identity of the catalog and its newest version."""
    row, versions = schema.catalog.c, schema.versions
    newest = select(row.identity, row.version, versions.c.mark).join(
        versions, versions.c.version == row.version
    )
    identity, count, mark = connection.execute(newest).one()
    return identity, Version(count, mark)


def _transient(error: DBAPIError) -> bool:
    """Whether a retry may help: the server is unreachable, or aborted the transaction."""
    if isinstance(error.orig, sqlite3.Error):
        # The busy timeout has passed already.
        return False
    if error.connection_invalidated or not isinstance(error, OperationalError):
        return error.connection_invalidated
    state = getattr(error.orig, "sqlstate", None)
    # No answer; connection lost; serialisation failure and deadlock; shutting down or starting up.
    return state is None or state.startswith("08") or state in ("40001", "40P01", "57P01", "57P02", "57P03")


def _locked(shown: str) -> CatalogError:
    reason = f"{shown}: another writer has held the lock for too long; try again when it is done"
    return CatalogError("catalog-locked", reason)


def _catalog_error(error: SQLAlchemyError, shown: str) -> CatalogError:
    cause = str(getattr(error, "orig", None) or error).strip()
    summary = cause.splitlines()[0] if cause else type(error).__name__
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
        if "locked" in summary or "busy" in summary:
            return _locked(shown)
        if "not a database" in summary or "malformed" in summary:
            return CatalogError("not-a-catalog", f"{shown}: {summary}; name another file, or restore it")
        if "unable to open" in summary or "readonly" in summary or "disk" in summary or "full" in summary:
            reason = f"{shown}: {summary}; is the folder there, writable, and with room to spare?"
            return CatalogError("catalog-unreachable", reason)
    if isinstance(error, DBAPIError) and _transient(error):
        reason = f"{shown}: {summary} (tried {ATTEMPTS} times); is the server up, and the URL right?"
        return CatalogError("catalog-unreachable", reason)
    return CatalogError("catalog-failed", f"{shown}: {summary}")
