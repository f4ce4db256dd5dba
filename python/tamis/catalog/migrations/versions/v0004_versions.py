"""Versions with random marks, which distinguish the changes of a restored catalog from those it lost."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """From a catalog whose versions are only counted.

    Earlier versions have no marks: a reader that is at one of them starts from an empty catalog, once.
    """
    # A migration has its own copy of the tables: `schema.py` changes later, a migration does not.
    version = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    versions = op.create_table(
        "versions",
        sa.Column("version", version, primary_key=True, autoincrement=False),
        sa.Column("mark", sa.String(16), nullable=False),
    )
    present = op.get_bind().execute(sa.text("SELECT version FROM catalog")).scalar_one()
    op.bulk_insert(versions, [{"version": present, "mark": secrets.token_hex(8)}])
    # Changes can be read since versions in this table only.
    op.drop_column("catalog", "compacted")
