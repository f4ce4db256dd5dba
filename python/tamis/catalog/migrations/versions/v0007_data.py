"""Local data: sets of records, their versions, and the subscriptions that name them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# A migration has its own copy of the tables: `schema.py` changes later, a migration does not.
NAME = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """From a catalog without local data."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "data_sets",
        sa.Column("number", number, primary_key=True, autoincrement=False),
        sa.Column("shared", sa.Integer, nullable=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("key", sa.Text, nullable=True),
        sa.Column("indexed", sa.Text, nullable=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("current", sa.BigInteger, nullable=True),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("name", "shared", "tenant", name="data_sets_by_name"),
    )
    op.create_table(
        "data_versions",
        sa.Column("data_set", number, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("uploading", sa.BigInteger, nullable=True),
        sa.ForeignKeyConstraint(["data_set"], ["data_sets.number"], name="data_versions_of_set"),
    )
    op.create_table(
        "data_uses",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("subscription", NAME, primary_key=True),
    )
    op.create_index("data_uses_by_subscription", "data_uses", ["tenant", "subscription"])
