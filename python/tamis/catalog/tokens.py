"""Tokens: create, find by secret, list, revoke."""

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
"""Prefix of secrets, so that people and secret scanners recognise them."""

SECRET_BYTES = 32
ID_BYTES = 4


class Tokens:
    """The tokens of a catalog. A secret is returned once; only its hash is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, new: NewToken) -> tuple[Token, str]:
        """A new token, and its secret."""
        if (new.role is Role.SUBSCRIBER) != (new.subscriber is not None):
            reason = "a subscriber's token names its subscriber, and no other token has one"
            raise CatalogError("bad-value", reason)
        for what, value in (("rate", new.rate), ("body", new.body)):
            if value is not None and value < 1:
                raise CatalogError("bad-value", f"{what} is at least 1, not {value}")
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        row = {
            "id": secrets.token_hex(ID_BYTES),
            "hash": _hash(secret),
            "name": rows.name(new.name, "name of the token"),
            "role": new.role.value,
            "tenant": rows.name(new.tenant, "tenant", may_be_empty=True),
            "subscriber": None if new.subscriber is None else rows.name(new.subscriber, "subscriber"),
            "rate": new.rate,
            "body": new.body,
            "created": time.time_ns() // 1000,
        }

        def work(connection: Connection) -> Token:
            by_id = select(tokens).where(tokens.c.id == row["id"])
            # Present if the connection was lost during the commit: then this is a retry.
            if connection.execute(by_id).first() is None:
                connection.execute(insert(tokens).values(row))
            return _token(connection.execute(by_id).mappings().one())

        return self._database.write_unversioned(work), secret

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
        """Revoke a token."""

        def work(connection: Connection) -> Token:
            chosen = tokens.c.id == id
            now = time.time_ns() // 1000
            connection.execute(update(tokens).where(chosen, tokens.c.revoked.is_(None)).values(revoked=now))
            row = connection.execute(select(tokens).where(chosen)).mappings().first()
            if row is None:
                reason = f"there is no token {id}; `tamis tokens list` lists them"
                raise CatalogError("unknown-token", reason)
            return _token(row)

        return self._database.write_unversioned(work)


def _hash(secret: str) -> str:
    """A fast hash is enough: secrets have 256 random bits."""
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
