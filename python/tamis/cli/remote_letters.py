"""The dead letters of a service, as the same rows as local ones."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tamis.cli.remote import OfService, RemoteError
from tamis.sinks.dead_letters import LetterFilter

MOST = 1_000
"""Letters per request."""

EVER = datetime(1970, 1, 1, tzinfo=UTC)


class RemoteLetters(OfService):
    """Dead letters."""

    def newest(self, wanted: LetterFilter, limit: int) -> list[dict[str, Any]]:
        """At most `limit` rows, the newest first."""
        _check(wanted)
        found = self._client.dead_letters(
            source=wanted.source, code=wanted.code, since=wanted.since, limit=min(limit, MOST)
        )
        return [_row(letter) for letter in found]

    def one(self, key: str) -> tuple[dict[str, Any], bytes]:
        """A letter, by its key or the id of its message, and the bytes of its message."""
        letter = self._client.dead_letter(key)
        return _row(letter), base64.b64decode(letter["base64"])

    def replay(self, wanted: LetterFilter, *, again: bool) -> tuple[int, Iterable[str]]:
        """The number of replayed letters, and the reasons for the others."""
        _check(wanted)
        done = self._client.replay(
            wanted.keys,
            source=wanted.source,
            code=wanted.code,
            since=wanted.since if wanted != LetterFilter() else EVER,
            again=again,
        )
        return done["replayed"], done["refused"]


def _check(wanted: LetterFilter) -> None:
    if wanted.tenant:
        raise RemoteError("other-tenant", "the token decides the tenant: leave --tenant out")


def _row(letter: dict[str, Any]) -> dict[str, Any]:
    names = (
        *("letter", "source", "offset", "received", "headers", "code", "reason", "subscription"),
        *("line", "column"),
    )
    return {"tenant": "", "id": letter["message"], "replayed": letter["replayed"]} | {
        name: letter[name] for name in names
    }
