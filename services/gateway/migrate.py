"""Bringing the database to this version: once, whoever else tries at the same time."""

import asyncio

import structlog
from alembic import command
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from services.core.backoff import Backoff
from services.core.errors import NotReachable
from services.core.records import database

from .errors import MigrationFailed
from .schema import alembic_config
from .settings import DatabaseSettings

_LOCK = 0x6C6C6D70  # any number, the same for every migration of the platform
_LOG_EVERY_SECONDS = 5


async def migrate(settings: DatabaseSettings, log: structlog.typing.FilteringBoundLogger) -> None:
    """Wait for Postgres and apply what is missing, under a lock that other migrations wait for.

    Raises:
        NotReachable: Postgres didn't come up within the limit.
        MigrationFailed: a migration could not be applied; nothing of it is left.
    """
    engine = database(settings.database_url, pool_size=1)
    try:
        await _wait_for_database(engine, settings.database_wait_seconds, log)
        async with engine.begin() as connection:
            await connection.execute(text("SET LOCAL lock_timeout = '60s'"))
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            await connection.run_sync(_upgrade)
    except SQLAlchemyError as error:
        raise MigrationFailed(str(getattr(error, "orig", error))) from error
    finally:
        await engine.dispose()
    log.info("the database is at this version")


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
        except (DBAPIError, OSError, TimeoutError) as error:
            now = loop.time()
            waited = round(now - started)
            if now - started > limit_seconds:
                raise NotReachable(f"Postgres did not answer within {waited} s: {error}") from error
            if now - said >= _LOG_EVERY_SECONDS or said == started:
                log.info("waiting for Postgres", waited_seconds=waited, error=type(error).__name__)
                said = now
            await backoff.wait()
