import asyncio

import pytest
from service_harness import Postgres, Service, free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")


def migration(url: str, **env: str) -> Service:
    return Service("services.gateway", {"DATABASE_URL": url, **env}, "migrate")


async def test_two_migrations_at_once_both_succeed(postgres: Postgres) -> None:
    name = postgres.new_database()
    both = [await migration(f"{postgres.url}/{name}").start() for _ in range(2)]
    assert await asyncio.gather(*(one.wait(60) for one in both)) == [0, 0]
    assert postgres.sql("SELECT count(*) FROM alembic_version", name) == "1"
    assert postgres.sql("SELECT count(*) FROM endpoints", name) == "0"


async def test_the_migration_makes_what_the_code_expects(postgres: Postgres, database: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from services.core.database import DatabaseSettings
    from services.core.database import database as engine_of
    from services.core.records import Record

    engine = engine_of(DatabaseSettings(database_url=f"{postgres.url}/{database}"))
    async with engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync), Record.metadata)
        )
    await engine.dispose()
    assert differences == []


async def test_a_database_that_is_away_is_waited_for_and_then_told() -> None:
    url = f"postgresql://u:canary-password@127.0.0.1:{free_port()}/d"
    job = await migration(url, DATABASE_WAIT_SECONDS="1").start()
    assert await job.wait(60) == 1
    assert job.said("waiting for Postgres")
    assert "did not answer within" in job.said("migration failed")[0]["error"]
    assert "canary-password" not in job.raw


async def test_a_database_of_a_newer_version_is_left_as_it_is(
    postgres: Postgres, database: str
) -> None:
    postgres.sql("UPDATE alembic_version SET version_num = '9999'", database)
    job = await migration(f"{postgres.url}/{database}").start()
    assert await job.wait(60) == 0
    assert job.said("a newer version has migrated the database")[0]["revision"] == "9999"
    assert postgres.sql("SELECT version_num FROM alembic_version", database) == "9999"


async def test_a_migration_that_fails_is_told_in_a_line(postgres: Postgres) -> None:
    name = postgres.new_database()
    postgres.sql("CREATE TABLE endpoints (x int)", name)  # somebody else's, in the way
    job = await migration(f"{postgres.url}/{name}").start()
    assert await job.wait(60) == 1
    assert "already exists" in job.said("migration failed")[0]["error"]
    assert "Traceback" not in job.raw
    assert postgres.sql("SELECT to_regclass('api_keys') IS NULL", name) == "t"


async def test_a_wrong_password_is_told_in_a_line(postgres: Postgres, database: str) -> None:
    url = f"{postgres.url}/{database}".replace("secret", "wrong-canary")
    job = await migration(url, DATABASE_WAIT_SECONDS="1").start()
    assert await job.wait(60) == 1
    assert "password" in job.said("migration failed")[0]["error"]
    assert "Traceback" not in job.raw
    assert "wrong-canary" not in job.raw


async def test_only_a_migration_may_take_any_time(postgres: Postgres, database: str) -> None:
    from services.core.database import DatabaseSettings
    from services.core.database import database as engine_of

    settings = DatabaseSettings(database_url=f"{postgres.url}/{database}")
    limits = []
    for engine in (engine_of(settings), engine_of(settings, statement_seconds=None)):
        async with engine.connect() as connection:
            raw = await connection.get_raw_connection()
            limits.append(raw.driver_connection._config.command_timeout)
        await engine.dispose()
    assert limits == [10, None]


async def test_the_server_notices_a_lost_client_soon(postgres: Postgres, database: str) -> None:
    from sqlalchemy import text

    from services.core.database import DatabaseSettings
    from services.core.database import database as engine_of

    engine = engine_of(DatabaseSettings(database_url=f"{postgres.url}/{database}"))
    async with engine.connect() as connection:
        for name, value in {"idle": "15", "interval": "5", "count": "3"}.items():
            assert await connection.scalar(text(f"SHOW tcp_keepalives_{name}")) == value
    await engine.dispose()
