"""Whether the database has the tables that this version needs."""

from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncSession

from services.core.errors import ServiceError

MIGRATIONS = Path(__file__).parent / "migrations"


class OldSchema(ServiceError):  # noqa: N818
    """The migrations of this version aren't applied yet."""


def alembic_config() -> Config:
    """Return Alembic's configuration, which needs no ini file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


@cache
def _older_revisions() -> frozenset[str]:
    script = ScriptDirectory.from_config(alembic_config())
    head = script.get_current_head()
    return frozenset(item.revision for item in script.walk_revisions() if item.revision != head)


async def check(session: AsyncSession) -> None:
    """Check the database's version; a newer one than ours is fine, as it is during a rollback.

    Raises:
        OldSchema: it is older, or there are no tables at all.
    """
    try:
        revision = await session.scalar(text("SELECT version_num FROM alembic_version"))
    except ProgrammingError as error:
        raise OldSchema("the database has no tables yet; the migration makes them") from error
    if revision is None or revision in _older_revisions():
        raise OldSchema(f"the database is at version {revision}, older than this gateway needs")
