"""The database of a catalog: opened by URL, migrated, read and written in transactions."""

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from tamis.model.version import Version

Result = TypeVar("Result")

ATTEMPTS = 4
"""So often is a transaction tried when the connection is lost, with a longer pause each time."""

PAUSE = 0.2
"""Seconds before the second attempt."""

BUSY_SECONDS = 30
"""How long to wait for another writer of an SQLite file; `?timeout=` in the URL says otherwise."""

MIGRATION_LOCK = 0x74616D6973
"""The advisory lock that one migrates a PostgreSQL catalog under."""

VERSION_TABLE = "catalog_schema"
"""Where the last migration is noted. Not Alembic's usual name: others may use the same database."""


@dataclass(slots=True)
class Writing:
    """A write transaction: the version it makes, and numbers for new revisions."""

    connection: Connection
    version: int
    number: int
    now: int
    """Microseconds since 1970."""
    changed: bool = field(default=False, init=False)
    """Whether there is anything to commit; if not, no version is used up."""

    def next_number(self) -> int:
        """A number that nobody had before."""
        self.number += 1
        return self.number


class Database:
    """A catalog's database, whichever it is."""

    def __init__(self, url: str) -> None:
        self._url = _parsed(url)
        self._engine = _engine(self._url)
        # SQLite has one writer at a time, and others look again after a while: ours wait in a row instead.
        row = self._url.get_backend_name() == "sqlite"
        self._row: AbstractContextManager[object] = threading.Lock() if row else nullcontext()
        try:
            self._retried(self._migrate)
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def write(self, work: Callable[[Writing], Result]) -> Result:
        """Do work in a transaction of its own, one writer after the other.

        It may be done again if the connection is lost, even in the middle of a commit: it must come
        to the same when it finds itself done.
        """

        def attempt() -> Result:
            with self._row, self._engine.connect().execution_options(writes=True) as connection:
                with connection.begin() as transaction:
                    row = schema.catalog.c
                    taken = update(schema.catalog).values(version=row.version + 1)
                    version, number = connection.execute(taken.returning(row.version, row.number)).one()
                    writing = Writing(connection, version, number, time.time_ns() // 1000)
                    result = work(writing)
                    if writing.number != number:
                        connection.execute(update(schema.catalog).values(number=writing.number))
                    if writing.changed:
                        made = {"version": version, "mark": secrets.token_hex(8)}
                        connection.execute(insert(schema.versions), [made])
                    else:
                        transaction.rollback()
                return result

        return self._retried(attempt)

    def write_aside(self, work: Callable[[Connection], Result]) -> Result:
        """Do work in a transaction that makes no version: no generation has to know of it.

        Other writers need not wait, where the database can do without. It may be done again, as in `write`.
        """

        def attempt() -> Result:
            with (
                self._row,
                self._engine.connect().execution_options(writes=True) as connection,
                connection.begin(),
            ):
                return work(connection)

        return self._retried(attempt)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Do work on one state of the catalog."""

        def attempt() -> Result:
            with self._engine.connect() as connection, connection.begin():
                return work(connection)

        return self._retried(attempt)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One state of the catalog to stream from; what fails on the way is not tried again."""
        connection = self._retried(self._engine.connect)
        with self._told(), connection, connection.begin():
            yield connection

    def compact(self, count: int) -> None:
        """Forget the versions before one that is remembered, and what was removed up to it."""

        def work(connection: Connection) -> None:
            versions, removals = schema.versions, schema.removals
            if connection.execute(select(versions).where(versions.c.version == count)).first() is not None:
                connection.execute(removals.delete().where(removals.c.version <= count))
                connection.execute(versions.delete().where(versions.c.version < count))

        self.write_aside(work)

    def _retried(self, work: Callable[[], Result]) -> Result:
        with self._told():
            for attempt in range(1, ATTEMPTS):
                try:
                    return work()
                except DBAPIError as error:
                    if not _transient(error):
                        raise
                time.sleep(PAUSE * 2 ** (attempt - 1))
            return work()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A database's errors as ours, with what to do about them."""
        try:
            yield
        except SQLAlchemyError as error:
            shown = self._url.render_as_string(hide_password=True)
            raise _explained(error, shown) from error

    def _migrate(self) -> None:
        with self._engine.connect() as connection:
            found = _schema_of(connection)
        if found == schema.NEWEST:
            return
        # Slow to import, and seldom needed.
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
            # Somebody else may have migrated meanwhile.
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


def _parsed(url: str) -> URL:
    """The URL of a database; a bare path is an SQLite file."""
    if "://" not in url:
        return URL.create("sqlite+pysqlite", database=url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise CatalogError("catalog-url", f"{url} is no URL of a database") from error
    drivers = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
    driver = drivers.get(parsed.get_backend_name())
    if driver is None or (driver.startswith("sqlite") and parsed.database in (None, "", ":memory:")):
        shown = parsed.render_as_string(hide_password=True)
        reason = f"{shown}: a catalog is sqlite:///FILE or postgresql://USER@HOST/NAME"
        raise CatalogError("catalog-url", reason)
    return parsed.set(drivername=driver)


def _engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() == "sqlite":
            given = {} if "timeout" in url.query else {"timeout": BUSY_SECONDS}
            engine = create_engine(url, connect_args=given)
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        given = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
        # One state per transaction. Writers are put in a row by the one row they all update first,
        # which needs the weaker level: at this one they would fail and not wait.
        engine = create_engine(url, connect_args=given, pool_pre_ping=True)
        event.listen(engine, "begin", _begin_postgresql)
        return engine
    except ModuleNotFoundError as error:
        reason = "for PostgreSQL, install tamis with its extra: pip install 'tamis[postgres]'"
        raise CatalogError("no-driver", reason) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise CatalogError("catalog-url", f"{url.render_as_string()}: {error}") from error


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # Transactions begin where we say so, not where the driver guesses.
    connection.isolation_level = None
    _enter_wal(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging.

    SQLite does not wait for other connections here, whatever its busy timeout: two processes that open a
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
    # A reader that turned writer would fail where a writer waits.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _schema_of(connection: Connection) -> str | None:
    """The last migration that a database has seen; None if it is no catalog yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return found


def identity_and_version(connection: Connection) -> tuple[str, Version]:
    """Which catalog this is, and how far it is."""
    row, versions = schema.catalog.c, schema.versions
    newest = select(row.identity, row.version, versions.c.mark).join(
        versions, versions.c.version == row.version
    )
    identity, count, mark = connection.execute(newest).one()
    return identity, Version(count, mark)


def _transient(error: DBAPIError) -> bool:
    """Whether trying again may help: the server is away, or ended the transaction for another's sake."""
    if isinstance(error.orig, sqlite3.Error):
        # Who waits for a lock has waited long enough already.
        return False
    if error.connection_invalidated or not isinstance(error, OperationalError):
        return error.connection_invalidated
    state = getattr(error.orig, "sqlstate", None)
    # No answer at all; connection lost; serialisation and deadlock; shutting down or starting up.
    return state is None or state.startswith("08") or state in ("40001", "40P01", "57P01", "57P02", "57P03")


def _explained(error: SQLAlchemyError, shown: str) -> CatalogError:
    cause = str(getattr(error, "orig", None) or error).strip()
    summary = cause.splitlines()[0] if cause else type(error).__name__
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
        if "locked" in summary or "busy" in summary:
            reason = f"{shown}: another process has been writing for too long; try again when it is done"
            return CatalogError("catalog-locked", reason)
        if "not a database" in summary or "malformed" in summary:
            return CatalogError("not-a-catalog", f"{shown}: {summary}; name another file, or restore it")
        if "unable to open" in summary or "readonly" in summary or "disk" in summary or "full" in summary:
            reason = f"{shown}: {summary}; is the folder there, writable, and with room to spare?"
            return CatalogError("catalog-unreachable", reason)
    if isinstance(error, DBAPIError) and _transient(error):
        reason = f"{shown}: {summary} (tried {ATTEMPTS} times); is the server up, and the URL right?"
        return CatalogError("catalog-unreachable", reason)
    return CatalogError("catalog-failed", f"{shown}: {summary}")
