"""The headers of messages, with their deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("mailbox", "outgoing"):
        op.add_column(table, sa.Column("headers", sa.Text, nullable=True))
