"""Versions, each with a mark: what a restored catalog changes next is told from what it changed before."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """From a catalog that tells its versions by how many there were.

    The versions before have no marks: who is at one of them starts from nothing, once.
    """
    # A migration states what it made in full: the schema goes on, this does not.
    version = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    versions = op.create_table(
        "versions",
        sa.Column("version", version, primary_key=True, autoincrement=False),
        sa.Column("mark", sa.String(16), nullable=False),
    )
    present = op.get_bind().execute(sa.text("SELECT version FROM catalog")).scalar_one()
    op.bulk_insert(versions, [{"version": present, "mark": secrets.token_hex(8)}])
    # Changes lead from the versions that are kept, and from no others.
    op.drop_column("catalog", "compacted")
