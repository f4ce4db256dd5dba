"""`tamis dead-letters list|show|replay`."""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from tamis.cli.remote import RemoteError, add_url, client_of, url_of
from tamis.cli.remote_letters import RemoteLetters
from tamis.cli.tables import print_table
from tamis.errors import marked
from tamis.model.headers import unpack_headers
from tamis.model.printable import printable
from tamis.settings import Settings, load_settings
from tamis.sinks.dead_letters import DeadLetters, Letter, LetterFilter
from tamis.sinks.replay import ReplayMark, Replays, choose
from tamis.sources.directory import DirectorySource
from tamis.sources.transcode import display_text

TITLES = ("letter", "received", "tenant", "source", "message", "reason", "replayed")

NAMED = "a letter, or the id of its message or delivery"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands below `dead-letters`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(commands, "list", list_, "a table of dead letters, the newest last")
    _add_filters(command)
    command.add_argument("--limit", type=int, default=100, metavar="N", help="the newest N (default: 100)")
    command.add_argument("--json", action="store_true", help="one line of JSON each")

    command = _command(commands, "show", show, "one letter, and what is wrong with its message")
    command.add_argument("key", metavar="LETTER", help=NAMED)
    command.add_argument("--raw", action="store_true", help="write only the bytes of the message")

    command = _command(
        commands, "replay", replay, "put messages back into the inbox of their source, send deliveries again"
    )
    command.add_argument("keys", nargs="*", metavar="LETTER", help=NAMED)
    _add_filters(command)
    command.add_argument(
        "--all", action="store_true", help="all letters; required without any other selection"
    )
    command.add_argument(
        "--to",
        type=Path,
        metavar="INBOX",
        help="put messages into this inbox instead of their own; delivery ids change",
    )
    command.add_argument("--again", action="store_true", help="also letters that were replayed before")


def _command(commands: Any, name: str, run: Any, text: str) -> Any:
    command = commands.add_parser(name, help=text)
    command.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: tamis.toml)")
    command.add_argument(
        "--dead-letters", metavar="URL", help="the dead letters (default: from the settings)"
    )
    add_url(command)
    command.set_defaults(run=run)
    return command


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tenant", metavar="NAME")
    command.add_argument("--source", metavar="NAME")
    command.add_argument("--code", help="error code")
    command.add_argument(
        "--since",
        type=_since,
        metavar="TIME",
        help="received since: 2026-01-31T12:00, or 90s, 30m, 6h, 2d ago",
    )


def _since(text: str) -> datetime:
    if ago := re.fullmatch(r"(\d+)([smhd])", text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.astimezone()


class LocalLetters:
    """The dead letters of a local job."""

    def __init__(self, settings: Settings, inbox: Path | None = None) -> None:
        """`inbox` overrides the inbox that letters are replayed to."""
        self._catalog = settings.catalog
        self._letters = DeadLetters(settings.dead_letters)
        self._replays = Replays(self._letters)
        self._inboxes = {one.name: one.path for one in settings.sources if isinstance(one, DirectorySource)}
        self._inbox = inbox

    def newest(self, wanted: LetterFilter, limit: int) -> list[dict[str, Any]]:
        """At most `limit` rows, the newest first."""
        marks = self._replays.marks()
        found = islice(self._letters.letters(wanted), limit)
        return [_row(letter, marks.get(letter.key)) for letter in found]

    def one(self, key: str) -> tuple[dict[str, Any], bytes]:
        """A letter, by its key or the id of its message, and the bytes of its message."""
        letter = self._letters.newest_letter(key)
        return _row(letter, self._replays.marks().get(letter.key)), self._letters.raw(letter)

    def replay(self, wanted: LetterFilter, *, again: bool) -> tuple[int, Iterable[str]]:
        """The number of replayed letters, and the reasons for the others."""
        with self._replays.locked():
            self._replays.finish()
            chosen = choose(
                self._letters.letters(wanted),
                self._replays.marks(),
                lambda letter: self._inbox or self._inboxes.get(letter.source),
                again=again,
            )
            return self._replays.replay_all(chosen, self._send)

    def _send(self, deliveries: Iterable[tuple[str, bytes]]) -> Mapping[str, str]:
        """Queue failed webhook deliveries again."""
        from tamis.catalog import Catalog

        with Catalog(self._catalog) as catalog:
            return catalog.dead_deliveries.resend(deliveries)


@contextmanager
def _letters(
    options: argparse.Namespace, inbox: Path | None = None
) -> Iterator[LocalLetters | RemoteLetters]:
    """The dead letters of a service if one is named, else of the local job."""
    local = options.config is not None or options.dead_letters is not None
    if local or url_of(options) is None:
        settings = load_settings(options.config, {"dead_letters": options.dead_letters})
        yield LocalLetters(settings, inbox)
    elif inbox is not None:
        raise RemoteError(
            "no-inbox", "--to does not work with a service: it replays letters to their own source"
        )
    else:
        with RemoteLetters(client_of(options)) as letters:
            yield letters


def _wanted(options: argparse.Namespace, keys: Iterable[str] = ()) -> LetterFilter:
    return LetterFilter(frozenset(keys), options.tenant, options.source, options.code, options.since)


def list_(options: argparse.Namespace) -> int:
    """`tamis dead-letters list`."""
    with _letters(options) as letters:
        found = letters.newest(_wanted(options), options.limit + 1)
    shown = found[: options.limit][::-1]
    if options.json:
        for row in shown:
            print(json.dumps(row, ensure_ascii=False))
    else:
        print_table(TITLES, [_cells(letter) for letter in shown], whole=["letter", "received"])
    if len(found) > len(shown):
        print("There are older letters: narrow the list down, or raise --limit.", file=sys.stderr)
    return 0


def _row(letter: Letter, mark: ReplayMark | None) -> dict[str, Any]:
    value = {"letter": letter.key, **asdict(letter), "received": letter.received.isoformat()}
    del value["part"], value["row"]
    value["headers"] = unpack_headers(letter.headers) or None
    return {**value, "replayed": mark.time if mark else None}


def _cells(letter: Mapping[str, Any]) -> list[str]:
    place = f" (line {letter['line']}, column {letter['column']})" if letter["line"] is not None else ""
    if letter["subscription"] is not None:
        place = f" (for the subscription {letter['subscription']})"
    replayed = "yes" if letter["replayed"] else ""
    received = datetime.fromisoformat(letter["received"]).astimezone(UTC)
    values = (letter["letter"], f"{received:%m-%d %H:%M}", letter["tenant"], letter["source"], letter["id"])
    reason = f"{letter['code']}: {letter['reason']}{place}"
    return [*values, reason, replayed]


def show(options: argparse.Namespace) -> int:
    """`tamis dead-letters show LETTER`."""
    with _letters(options) as letters:
        letter, raw = letters.one(options.key)
    if options.raw:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return 0
    for name, value in letter.items():
        if name == "headers":
            for header, text in (value or {}).items():
                print(f"{'header':9} {printable(f'{header} = {text}')}")
        elif value is not None:
            print(f"{name:9} {printable(str(value))}")
    print(f"{'bytes':9} {len(raw)}")
    if letter["line"] is not None and letter["column"] is not None:
        print(
            "\n".join(map(printable, marked(display_text(raw), letter["line"], letter["column"]).split("\n")))
        )
    return 0


def replay(options: argparse.Namespace) -> int:
    """`tamis dead-letters replay LETTER…`."""
    wanted = _wanted(options, options.keys)
    if wanted == LetterFilter() and not options.all:
        print("tamis: name letters, narrow them down, or say --all", file=sys.stderr)
        return 2
    with _letters(options, options.to) as letters:
        count, refused = letters.replay(wanted, again=options.again)
    reasons = list(refused)
    for reason in reasons:
        print(f"tamis: {printable(reason)}", file=sys.stderr)
    print(f"{count} replayed, {len(reasons)} not")
    return 1 if reasons or not count else 0
