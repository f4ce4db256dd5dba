"""Alembic's entry point: runs the migrations in the caller's connection and transaction."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table=given["version_table"])
context.run_migrations()
