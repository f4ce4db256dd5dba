"""Routes: what the neighbours of a broker want, and since which version each broker routes to this one."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

# A migration states what it made in full: the schema goes on, this does not.
NAME = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")


def upgrade() -> None:
    """From a catalog of subscriptions only."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "routes",
        sa.Column("number", number, primary_key=True, autoincrement=False),
        sa.Column("link", NAME, nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("link", "key", name="routes_by_key"),
    )
    op.create_index("routes_by_version", "routes", ["version"])
    op.create_table(
        "route_tables",
        sa.Column("link", NAME, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("mark", sa.String(32), nullable=False),
        sa.Column("hash", sa.String(32), nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "established",
        sa.Column("broker", NAME, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
