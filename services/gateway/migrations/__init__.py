"""The database's versions, applied in order by Alembic."""
