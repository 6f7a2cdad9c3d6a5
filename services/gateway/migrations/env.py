"""Alembic's entry: the connection, with its transaction and lock, comes from our migrate module."""

from alembic import context

from services.core.records import Record

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Record.metadata
)
with context.begin_transaction():
    context.run_migrations()
