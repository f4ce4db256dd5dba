"""Webhooks, and the deliveries that are sent to them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

# A migration has its own copy of the tables: `schema.py` changes later, a migration does not.
NAME = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """From a catalog whose deliveries wait in mailboxes only."""
    op.create_table(
        "webhooks",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("subscriber", NAME, nullable=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=True),
        sa.Column("previous_until", sa.BigInteger, nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("held_until", sa.BigInteger, nullable=True),
        sa.Column("succeeded", sa.BigInteger, nullable=True),
        sa.Column("failed", sa.BigInteger, nullable=True),
        sa.Column("failure", sa.Text, nullable=True),
    )
    op.create_table(
        "outgoing",
        sa.Column("id", NAME, primary_key=True),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("subscriber", NAME, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("subscription", NAME, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("matched", sa.BigInteger, nullable=False),
        sa.Column("encoding", sa.Text, nullable=True),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due", sa.BigInteger, nullable=True),
        sa.Column("code", sa.String(32), nullable=True),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("burial", sa.String(32), nullable=True),
        sa.Column("ended", sa.BigInteger, nullable=True),
    )
    for name, columns, which in (
        ("outgoing_due", ["tenant", "webhook", "due"], "due IS NOT NULL"),
        ("outgoing_dying", ["burial"], "state = 'dying'"),
        ("outgoing_sent", ["ended"], "state = 'sent'"),
    ):
        where = sa.text(which)
        op.create_index(name, "outgoing", columns, sqlite_where=where, postgresql_where=where)
