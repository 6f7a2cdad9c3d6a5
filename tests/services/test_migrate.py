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

    from services.core.records import Record
    from services.core.records import database as engine_of

    engine = engine_of(f"{postgres.url}/{database}")
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
