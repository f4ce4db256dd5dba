"""The tables of the service: tokens, accepted messages, mailboxes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# A migration has its own copy of the tables: `schema.py` changes later, a migration does not.
NAME = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """From a catalog of subscriptions alone."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("name", NAME, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("subscriber", NAME, nullable=True),
        sa.Column("rate", sa.Integer, nullable=True),
        sa.Column("body", sa.BigInteger, nullable=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger, nullable=True),
    )
    op.create_table(
        "accepted",
        sa.Column("source", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("received", sa.BigInteger, nullable=False),
    )
    op.create_table("entering", sa.Column("file", NAME, primary_key=True))
    head = op.create_table(
        "mailbox_head",
        sa.Column("row", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(head, [{"row": 1, "number": 0}])
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "mailbox",
        sa.Column("number", number, primary_key=True, autoincrement=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("subscriber", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False, unique=True),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("subscription", NAME, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("matched", sa.BigInteger, nullable=False),
        sa.Column("encoding", sa.Text, nullable=True),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("acknowledged", sa.BigInteger, nullable=True),
    )
    waiting, done = sa.text("acknowledged IS NULL"), sa.text("acknowledged IS NOT NULL")
    op.create_index(
        "mailbox_waiting",
        "mailbox",
        ["tenant", "subscriber", "number"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    op.create_index(
        "mailbox_acknowledged", "mailbox", ["acknowledged"], sqlite_where=done, postgresql_where=done
    )
    op.create_table("tailed", sa.Column("manifest", NAME, primary_key=True))
