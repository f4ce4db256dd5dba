"""Alembic's entry point: runs the migrations in the caller's connection and transaction."""

from alembic import context

attributes = context.config.attributes
context.configure(connection=attributes["connection"], version_table=attributes["version_table"])
context.run_migrations()
