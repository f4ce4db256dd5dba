"""Tokens: made, found by their secret, listed and revoked."""

import hashlib
import secrets
import time
from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, insert, select, update

from tamis.catalog import rows
from tamis.catalog.database import Database
from tamis.catalog.schema import tokens
from tamis.errors import CatalogError
from tamis.model.token import NewToken, Role, Token

PREFIX = "tamis_"
"""How tokens begin, so that people and scanners know one when they see it."""

SECRET_BYTES = 32
ID_BYTES = 4


class Tokens:
    """The tokens of a catalog. A secret is seen once, when it is made: only its hash is kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, asked: NewToken) -> tuple[Token, str]:
        """A new token, and its secret."""
        if (asked.role is Role.SUBSCRIBER) != (asked.subscriber is not None):
            reason = "a subscriber's token names its subscriber, and no other token has one"
            raise CatalogError("bad-value", reason)
        for what, value in (("rate", asked.rate), ("body", asked.body)):
            if value is not None and value < 1:
                raise CatalogError("bad-value", f"{what} is at least 1, not {value}")
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        row = {
            "id": secrets.token_hex(ID_BYTES),
            "hash": _hash(secret),
            "name": rows.name(asked.name, "name of the token"),
            "role": asked.role.value,
            "tenant": rows.name(asked.tenant, "tenant", may_be_empty=True),
            "subscriber": None if asked.subscriber is None else rows.name(asked.subscriber, "subscriber"),
            "rate": asked.rate,
            "body": asked.body,
            "created": time.time_ns() // 1000,
        }

        def work(connection: Connection) -> Token:
            here = select(tokens).where(tokens.c.id == row["id"])
            # It is there already if the connection was lost while this was committed.
            if connection.execute(here).first() is None:
                connection.execute(insert(tokens).values(row))
            return _token(connection.execute(here).mappings().one())

        return self._database.write_aside(work), secret

    def find(self, secret: str) -> Token | None:
        """The token with a secret, unless it is revoked."""
        valid = select(tokens).where(tokens.c.hash == _hash(secret), tokens.c.revoked.is_(None))

        def work(connection: Connection) -> Token | None:
            row = connection.execute(valid).mappings().first()
            return None if row is None else _token(row)

        return self._database.read(work)

    def list(self) -> Sequence[Token]:
        """All tokens, the oldest first."""
        every = select(tokens).order_by(tokens.c.created, tokens.c.id)
        return self._database.read(
            lambda connection: [_token(row) for row in connection.execute(every).mappings()]
        )

    def revoke(self, id: str) -> Token:
        """Let a token be good for nothing from now on."""

        def work(connection: Connection) -> Token:
            chosen = tokens.c.id == id
            now = time.time_ns() // 1000
            connection.execute(update(tokens).where(chosen, tokens.c.revoked.is_(None)).values(revoked=now))
            row = connection.execute(select(tokens).where(chosen)).mappings().first()
            if row is None:
                reason = f"there is no token {id}; `tamis tokens list` shows those there are"
                raise CatalogError("unknown-token", reason)
            return _token(row)

        return self._database.write_aside(work)


def _hash(secret: str) -> str:
    """Slow hashing is for passwords: nobody guesses 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: RowMapping) -> Token:
    return Token(
        name=row["name"],
        role=Role(row["role"]),
        tenant=row["tenant"],
        subscriber=row["subscriber"],
        rate=row["rate"],
        body=row["body"],
        id=row["id"],
        created=rows.time_of(row["created"]),
        revoked=None if row["revoked"] is None else rows.time_of(row["revoked"]),
    )
