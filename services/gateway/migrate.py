"""Bringing the database to this version: once, whoever else tries at the same time."""

import asyncio

import asyncpg
import structlog
from alembic import command
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from services.core.backoff import Backoff
from services.core.database import database
from services.core.errors import NotReachable

from .errors import MigrationFailed
from .schema import alembic_config
from .settings import MigrationSettings

_LOCK = 0x6C6C6D70  # any number, the same for every migration of the platform
_LOG_EVERY_SECONDS = 5
_DATABASE_ERRORS = (SQLAlchemyError, asyncpg.PostgresError, OSError, TimeoutError)


async def migrate(settings: MigrationSettings, log: structlog.typing.FilteringBoundLogger) -> None:
    """Wait for Postgres and apply what is missing, under a lock that other migrations wait for.

    Raises:
        NotReachable: Postgres didn't come up within the limit.
        MigrationFailed: a migration could not be applied; nothing of it is left.
    """
    engine = database(settings, pool_size=1, statement_seconds=None)
    try:
        await _wait_for_database(engine, settings.database_wait_seconds, log)
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            await connection.execute(text("SET LOCAL lock_timeout = '60s'"))
            newer = await connection.run_sync(_newer_than_ours)
            if newer:
                log.info("a newer version has migrated the database", revision=newer)
                return
            await connection.run_sync(_upgrade)
    except (*_DATABASE_ERRORS, CommandError) as error:
        raise MigrationFailed(str(getattr(error, "orig", None) or error)) from error
    finally:
        await engine.dispose()
    log.info("the database is at this version")


def _newer_than_ours(connection: Connection) -> str:
    """Return the database's revision when this version doesn't know it, as after a rollback."""
    script = ScriptDirectory.from_config(alembic_config())
    known = {item.revision for item in script.walk_revisions()}
    heads = MigrationContext.configure(connection).get_current_heads()
    return ", ".join(sorted(set(heads) - known))


def _upgrade(connection: Connection) -> None:
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


async def _wait_for_database(
    engine, limit_seconds: float, log: structlog.typing.FilteringBoundLogger
) -> None:
    loop = asyncio.get_running_loop()
    started = said = loop.time()
    backoff = Backoff(limit_seconds=2)
    while True:
        try:
            async with engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
            return
        except _DATABASE_ERRORS as error:
            now = loop.time()
            waited = round(now - started)
            if now - started > limit_seconds:
                raise NotReachable(f"Postgres did not answer within {waited} s: {error}") from error
            if now - said >= _LOG_EVERY_SECONDS or said == started:
                log.info("waiting for Postgres", waited_seconds=waited, error=type(error).__name__)
                said = now
            await backoff.wait()
