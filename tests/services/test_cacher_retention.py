# ruff: noqa: S608  (the tests' own statements, on the tests' own server)
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from moto.server import ThreadedMotoServer
from service_harness import KubeApi, Postgres, RedisServer, served, serving, until
from test_async_gateway import bucket_environment, buckets
from test_cacher import cacher_of

__all__ = ["buckets"]

pytestmark = pytest.mark.asyncio(loop_scope="session")

BUCKET = "kept"


def add_task(postgres: Postgres, database: str, name: str, settled: str) -> None:
    postgres.sql(
        "INSERT INTO tasks (id, endpoint, namespace, team, caller, status, token_hash, payload_key,"
        " result_key, timeout_seconds, expires_at, settled_at)"
        f" VALUES ('{name}', 'e', 'team-red', 'red', 'red', 'SUCCESS', '', '', '', 1,"
        f" {settled}, {settled})",
        database,
    )


@pytest.fixture
def s3(buckets: ThreadedMotoServer) -> Iterator[Any]:
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{buckets._port}",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        region_name="us-east-1",
    )
    with contextlib.closing(client):
        yield client


async def test_old_tasks_go_with_all_that_they_kept(
    postgres: Postgres,
    redis_server: RedisServer,
    migrated: str,
    s3: Any,
    tmp_path: Path,
) -> None:
    s3.create_bucket(Bucket=BUCKET)
    database = postgres.copy_of(migrated)
    for number in range(5):
        s3.put_object(Bucket=BUCKET, Key=f"results/red/e/old-{number}/1.json", Body=b"1")
    postgres.sql(
        "INSERT INTO tasks (id, endpoint, namespace, team, caller, status, token_hash, payload_key,"
        " result_key, timeout_seconds, expires_at, settled_at)"
        " SELECT 'old-' || n, 'e', 'team-red', 'red', 'red', 'SUCCESS', '', '', '', 1,"
        " now(), now() - interval '8 days' FROM generate_series(0, 1199) n",
        database,
    )
    add_task(postgres, database, "new", "now()")
    add_task(postgres, database, "waiting", "now() + interval '30 days'")
    for key in ("results/red/e/new/1.json", "tasks/red/e/waiting/payload", "weights/v1/x/y/z"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"1")
    s3.put_object(Bucket=BUCKET, Key="tasks/red/e/never-recorded/payload", Body=b"1")
    kube = KubeApi(tmp_path)
    cacher = cacher_of(postgres, database, redis_server, kube)
    cacher._env |= bucket_environment(urlsplit(s3.meta.endpoint_url).port) | {
        "LLM_PLATFORM_BUCKET": BUCKET,
        "LLM_PLATFORM_RETENTION_CHECK_SECONDS": "0.2",
    }
    async with serving(kube), served(await cacher.start()):

        def ids() -> str:
            return postgres.sql("SELECT string_agg(id, ',' ORDER BY id) FROM tasks", database)

        await until(lambda: ids() == "new,waiting", 30)
        # It is told when the bucket has been looked through as well.
        told = await until(lambda: cacher.said("old tasks deleted"), 30)
        assert [(line["tasks"], line["objects"]) for line in told] == [(1200, 0)]
        # Objects so young might belong to a task that is being written: they stay for an hour.
        assert len(s3.list_objects_v2(Bucket=BUCKET)["Contents"]) == 9


async def test_objects_without_a_task_go_when_they_are_old(
    postgres: Postgres, migrated: str, buckets: ThreadedMotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datetime

    import structlog

    from services.cacher import retention
    from services.core import bucket as bucket_module
    from services.core.bucket import Bucket
    from services.core.database import DatabaseSettings
    from services.core.database import database as engine_of

    port: int = buckets._port
    for name, value in bucket_environment(port).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(retention, "_YOUNG", datetime.timedelta(seconds=-5))
    monkeypatch.setattr(bucket_module, "_PAGE", 10)
    database = postgres.copy_of(migrated)
    add_task(postgres, database, "new", "now()")
    engine = engine_of(DatabaseSettings(database_url=f"{postgres.url}/{database}"))
    bucket = Bucket("swept", threads=2)
    await bucket.create()
    for key in ("results/red/e/new/1.json", "weights/v1/x/y/z"):
        await bucket.put(key, b"1")
    for number in range(25):
        await bucket.put(f"results/red/e/gone/{number}.json", b"1")
    keep = datetime.timedelta(days=7)
    log = structlog.get_logger()
    await retention.Retention(engine, bucket, keep, lambda: True, log).apply()
    now = datetime.datetime.now(datetime.UTC)
    left = [*(await bucket.page("results/", "", now)).keys, *(await bucket.page("w", "", now)).keys]
    assert left == ["results/red/e/new/1.json", "weights/v1/x/y/z"]
    bucket.close()
    await engine.dispose()
