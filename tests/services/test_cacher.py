# ruff: noqa: S608  (the tests' own statements, on the tests' own server)
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from service_harness import (
    KubeApi,
    Postgres,
    RedisServer,
    Service,
    metric,
    registration_map,
    served,
    serving,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONDITION = "llm-platform/condition"


@dataclass
class World:
    """A cluster with two teams, and a cacher that watches it."""

    cacher: Service
    kube: KubeApi
    postgres: Postgres
    redis: RedisServer
    database: str

    def endpoints(self) -> dict[str, str]:
        rows = self.postgres.sql("SELECT name, namespace FROM endpoints", self.database)
        return dict(row.split("|") for row in rows.splitlines())

    def column(self, name: str, column: str) -> str:
        return self.postgres.sql(
            f"SELECT {column} FROM endpoints WHERE name = '{name}'", self.database
        )

    def condition(self, namespace: str, name: str) -> dict[str, str] | None:
        item = self.kube.objects["configmaps"][namespace, f"{name}-registration"]
        text = item["metadata"].get("annotations", {}).get(CONDITION)
        return json.loads(text) if text else None

    def state(self, name: str) -> dict[str, int] | None:
        text = self.redis.command("GET", f"llm-platform:endpoint-state:{name}")
        return json.loads(text) if text else None


def cacher_of(
    postgres: Postgres,
    database: str,
    redis: RedisServer,
    kube: KubeApi,
    release_seconds: str = "0.5",
) -> Service:
    env = {
        "DATABASE_URL": f"{postgres.url}/{database}",
        "REDIS_URL": redis.url,
        "KUBECONFIG": str(kube.kubeconfig),
        "RESYNC_SECONDS": "1",
        "STATE_TTL_SECONDS": "4",
        "NAME_RELEASE_SECONDS": release_seconds,
    }
    return Service("services.cacher", env)


@contextlib.asynccontextmanager
async def a_world(
    postgres: Postgres, redis: RedisServer, migrated: str, folder: Path, release_seconds: str
) -> AsyncIterator[World]:
    kube = KubeApi(folder)
    for team in ("red", "blue"):
        labels = {"llm-platform/team": team}
        kube.put("namespaces", {"metadata": {"name": f"team-{team}", "labels": labels}})
    database = postgres.copy_of(migrated)
    cacher = cacher_of(postgres, database, redis, kube, release_seconds)
    whole = World(cacher, kube, postgres, redis, database)
    async with serving(kube):
        try:
            await cacher.start()
            await cacher.ready()
            yield whole
        finally:
            await whole.cacher.stop()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def one_world(
    postgres: Postgres,
    redis_server: RedisServer,
    migrated: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("cacher")
    async with a_world(postgres, redis_server, migrated, folder, "0.5") as whole:
        yield whole


@pytest_asyncio.fixture(loop_scope="session")
async def lasting(
    postgres: Postgres, redis_server: RedisServer, migrated: str, tmp_path: Path
) -> AsyncIterator[World]:
    """A world of its own, in which a name isn't released while a test runs."""
    async with a_world(postgres, redis_server, migrated, tmp_path, "600") as whole:
        yield whole


@pytest_asyncio.fixture(loop_scope="session")
async def world(one_world: World) -> AsyncIterator[World]:
    """A cluster without registrations."""
    kube = one_world.kube
    kube.put("namespaces", {"metadata": {"name": "default", "labels": {}}})
    yield one_world
    for kind in ("configmaps", "endpointslices"):
        for namespace, name in list(kube.objects[kind]):
            kube.delete(kind, namespace, name)
    await until(lambda: one_world.endpoints() == {}, 30)


async def test_a_registration_becomes_a_record_and_goes_with_it(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red", stack="org/p/s"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    assert world.column("a", "team") == "red"
    assert world.column("a", "stack") == "org/p/s"
    assert json.loads(world.column("a", "registration"))["service"] == "a"
    assert world.column("a", "status") == "pending"
    world.kube.put_slice("team-red", "a", {5001: True, 5002: False})
    await until(lambda: world.column("a", "status") == "ready")
    await until(lambda: world.state("a") == {"ready_workers": 1})
    assert int(world.redis.command("TTL", "llm-platform:endpoint-state:a")) > 0
    world.kube.delete("configmaps", "team-red", "a-registration")
    await until(lambda: world.endpoints() == {})
    await until(lambda: world.state("a") is None)


async def test_a_changed_registration_changes_the_record(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    world.kube.put("configmaps", registration_map("a", "team-red", max_concurrency=9))
    await until(lambda: json.loads(world.column("a", "registration"))["max_concurrency"] == 9)


async def test_a_name_stays_with_its_first_namespace(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    older = registration_map("a", "team-blue")
    older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.kube.put("configmaps", older)
    condition = await until(lambda: world.condition("team-blue", "a"))
    assert condition["reason"] == "NameTaken"
    assert condition["status"] == "False"
    assert "team-red" not in condition["message"]
    assert world.endpoints() == {"a": "team-red"}
    assert world.condition("team-red", "a") is None
    world.kube.delete("configmaps", "team-red", "a-registration")
    await until(lambda: world.endpoints() == {"a": "team-blue"})
    await until(lambda: world.condition("team-blue", "a") is None)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "registration.json"),
        ({"registration.json": "{"}, "JSON"),
        ({"registration.json": '{"name": "a"}'}, "type"),
        (registration_map("a", "x", max_concurrency=0)["data"], "max_concurrency"),
        (registration_map("a", "x", stack="nul \x00 in it")["data"], "stack"),
        (registration_map("a", "x", model="m" * 1025)["data"], "model"),
        (registration_map("A_b", "x")["data"], "name"),
    ],
)
async def test_an_invalid_registration_is_a_condition_that_names_the_field(
    world: World, data: dict[str, str], says: str
) -> None:
    item = registration_map("a", "team-red")
    world.kube.put("configmaps", {**item, "data": data})
    condition = await until(lambda: world.condition("team-red", "a"))
    assert condition["reason"] == "Invalid"
    assert says in condition["message"]
    assert world.endpoints() == {}
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})


async def test_only_team_namespaces_can_register(world: World) -> None:
    world.kube.put("configmaps", registration_map("sneaky", "default"))
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    assert world.condition("default", "sneaky") is None
    world.kube.put(
        "namespaces", {"metadata": {"name": "default", "labels": {"llm-platform/team": "new"}}}
    )
    await until(lambda: "sneaky" in world.endpoints())


async def test_what_others_changed_in_the_table_is_put_right(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    world.postgres.sql("DELETE FROM endpoints", world.database)
    await until(lambda: world.endpoints() == {"a": "team-red"})
    world.postgres.sql("UPDATE endpoints SET team = 'blue'", world.database)
    await until(lambda: world.column("a", "team") == "red")


async def test_it_goes_on_after_an_outage_of_everything(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    world.postgres.stop()
    world.redis.stop()
    await world.kube.stop()
    try:
        await until(lambda: world.cacher.said("the database is away"))
    finally:
        world.postgres.start()
        world.redis.start()
        await world.kube.start()
    world.kube.put("configmaps", registration_map("b", "team-blue"))
    await until(lambda: world.endpoints() == {"a": "team-red", "b": "team-blue"}, 30)
    await until(lambda: world.state("b") == {"ready_workers": 0})


async def test_one_instance_is_active_and_another_takes_over_at_sigterm(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    second = await cacher_of(world.postgres, world.database, world.redis, world.kube).start()
    await second.ready()
    assert await metric(second.url, "llm_platform_cacher_active") == 0
    assert await metric(world.cacher.url, "llm_platform_cacher_active") == 1
    first, world.cacher = world.cacher, second
    first.signal()
    assert await first.wait() == 0
    assert "Traceback" not in first.raw

    async def active() -> bool:
        return await metric(second.url, "llm_platform_cacher_active") == 1

    await until(active)
    world.kube.put("configmaps", registration_map("b", "team-red"))
    await until(lambda: "b" in world.endpoints())


async def test_a_field_of_a_newer_version_is_left_out(world: World) -> None:
    world.kube.put("configmaps", registration_map("a", "team-red", surprise=1))
    await until(lambda: world.endpoints() == {"a": "team-red"})
    assert world.condition("team-red", "a") is None
    assert "surprise" not in json.loads(world.column("a", "registration"))


async def test_a_row_that_the_database_refuses_stops_nobody_else(world: World) -> None:
    rule = "ALTER TABLE endpoints ADD CONSTRAINT poison CHECK (stack <> 'poison')"
    world.postgres.sql(rule, world.database)
    world.kube.put("configmaps", registration_map("a", "team-red", stack="poison"))
    condition = await until(lambda: world.condition("team-red", "a"))
    assert condition["reason"] == "Invalid"
    assert "poison" in condition["message"]
    world.kube.put("configmaps", registration_map("b", "team-blue"))
    await until(lambda: world.endpoints() == {"b": "team-blue"})
    world.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: world.endpoints() == {"a": "team-red", "b": "team-blue"})
    world.postgres.sql("ALTER TABLE endpoints DROP CONSTRAINT poison", world.database)


async def test_an_unreadable_registration_keeps_its_record_and_its_name(lasting: World) -> None:
    lasting.kube.put("configmaps", registration_map("a", "team-red", max_concurrency=9))
    await until(lambda: lasting.endpoints() == {"a": "team-red"})
    broken = registration_map("a", "team-red")
    lasting.kube.put("configmaps", {**broken, "data": {"registration.json": "{"}})
    await until(lambda: lasting.condition("team-red", "a"))
    lasting.kube.put("configmaps", registration_map("a", "team-blue"))
    condition = await until(lambda: lasting.condition("team-blue", "a"))
    assert condition["reason"] == "NameTaken"
    assert "team-red" not in condition["message"]
    assert lasting.endpoints() == {"a": "team-red"}
    assert json.loads(lasting.column("a", "registration"))["max_concurrency"] == 9
    lasting.kube.put_slice("team-red", "a", {5001: True})
    await until(lambda: lasting.column("a", "status") == "ready")
    await until(lambda: lasting.state("a") == {"ready_workers": 1})


async def test_a_name_is_kept_for_a_while_after_its_registration_is_gone(lasting: World) -> None:
    lasting.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: lasting.endpoints() == {"a": "team-red"})
    lasting.kube.delete("configmaps", "team-red", "a-registration")
    await until(lambda: lasting.column("a", "status") == "absent")
    await until(lambda: lasting.state("a") is None)
    gone = lasting.column("a", "updated_at")
    lasting.kube.put("configmaps", registration_map("a", "team-blue"))
    condition = await until(lambda: lasting.condition("team-blue", "a"))
    assert condition["reason"] == "NameTaken"
    # A restart of the cacher forgets neither the owner nor since when it is away.
    await lasting.cacher.stop()
    lasting.cacher = cacher_of(
        lasting.postgres, lasting.database, lasting.redis, lasting.kube, "600"
    )
    await (await lasting.cacher.start()).ready()
    passes = "llm_platform_cacher_passes_total"

    async def compared() -> bool:
        return await metric(lasting.cacher.url, passes, result="done") >= 2

    await until(compared)
    assert lasting.column("a", "updated_at") == gone
    assert lasting.endpoints() == {"a": "team-red"}
    lasting.kube.put("configmaps", registration_map("a", "team-red"))
    await until(lambda: lasting.column("a", "status") == "pending")
    assert lasting.condition("team-blue", "a")
    lasting.kube.delete("configmaps", "team-red", "a-registration")
    await until(lambda: lasting.column("a", "status") == "absent")
    long_ago = "UPDATE endpoints SET updated_at = now() - interval '601 s'"
    lasting.postgres.sql(long_ago, lasting.database)
    await until(lambda: lasting.endpoints() == {"a": "team-blue"})
    await until(lambda: lasting.condition("team-blue", "a") is None)


async def test_waiting_for_the_lock_is_told_once(world: World) -> None:
    second = await cacher_of(world.postgres, world.database, world.redis, world.kube).start()
    async with served(second):
        await until(lambda: second.said("waiting for the lock"))
        await second.ready()
        assert len(second.said("waiting for the lock")) == 1
