"""What Alembic runs to migrate: on the connection, and in the transaction, that it is given."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table=given["version_table"])
context.run_migrations()
