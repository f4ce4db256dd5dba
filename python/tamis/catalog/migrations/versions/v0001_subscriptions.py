"""Subscriptions, prefix maps, and the version of the last change of each."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# A migration has its own copy of the tables: `schema.py` changes later, a migration does not.
NAME = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """From nothing."""
    catalog = op.create_table(
        "catalog",
        sa.Column("row", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("identity", sa.String(32), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("compacted", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "prefix_maps",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("prefixes", sa.Text, nullable=False),
    )
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "subscriptions",
        sa.Column("number", number, primary_key=True, autoincrement=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("subscriber", NAME, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("prefixes", sa.Text, nullable=False),
        sa.Column("prefix_map", NAME, nullable=True),
        sa.Column("delivery_target", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "id", name="subscriptions_by_id"),
        sa.ForeignKeyConstraint(
            ["tenant", "prefix_map"],
            ["prefix_maps.tenant", "prefix_maps.name"],
            name="subscriptions_prefix_map",
        ),
    )
    op.create_index("subscriptions_by_version", "subscriptions", ["version"])
    op.create_index("subscriptions_by_subscriber", "subscriptions", ["tenant", "subscriber", "id"])
    op.create_table(
        "removals",
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    op.create_table(
        "retired",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    first = {"row": 1, "identity": uuid.uuid4().hex, "version": 0, "number": 0, "compacted": 0}
    op.bulk_insert(catalog, [first])
