from typing import Any

import aiohttp
import pytest
from service_harness import (
    KubeApi,
    Postgres,
    RedisServer,
    metric,
    registration_map,
    running,
    served,
    until,
)
from test_cacher import World, cacher_of, one_world, world

from components.domain import metrics
from components.domain.keys import TASK_QUEUE, task_prefix
from services.core.broker.base import PublishedTask, TaskQueue
from services.core.broker.make import make_broker
from services.core.broker.settings import broker_settings

__all__ = ["one_world", "world"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def scaling(url: str, namespace: str, endpoint: str) -> tuple[int, dict[str, Any]]:
    path = f"{url}/scaling/{namespace}/{endpoint}"
    async with aiohttp.ClientSession() as session, session.get(path) as answer:
        return answer.status, await answer.json()


async def until_known(world: World, name: str, namespace: str = "team-red") -> None:
    async def known() -> bool:
        return (await scaling(world.cacher.url, namespace, name))[0] == 200

    await until(known)


def publish(redis: RedisServer, team: str, endpoint: str, count: int) -> None:
    broker = make_broker(broker_settings("redis", url=redis.url))
    for number in range(count):
        broker.publish(TaskQueue(team, endpoint), PublishedTask(f"t{number}", {"n": number}))
    broker.close()


async def test_waiting_and_running_tasks_are_outstanding(world: World) -> None:
    world.kube.put("configmaps", registration_map("q1", "team-red", type="async"))
    await until_known(world, "q1")
    assert await scaling(world.cacher.url, "team-red", "q1") == (200, {"outstanding": 0})
    publish(world.redis, "red", "q1", 3)
    assert await scaling(world.cacher.url, "team-red", "q1") == (200, {"outstanding": 3})
    # One is with a worker: it isn't in the list any more, and still work.
    prefix = task_prefix("red", "q1")
    raw = world.redis.command("RPOP", prefix + TASK_QUEUE)
    world.redis.command("HSET", prefix + "unacked", "claim", raw)
    assert await scaling(world.cacher.url, "team-red", "q1") == (200, {"outstanding": 3})

    async def measured() -> bool:
        labels = {"namespace": "team-red", "endpoint": "q1"}
        return await metric(world.cacher.url, metrics.CACHER_OUTSTANDING, **labels) == 3

    await until(measured)


async def test_ready_workers_are_told_by_namespace_and_endpoint(world: World) -> None:
    world.kube.put("configmaps", registration_map("w1", "team-red"))
    world.kube.put_slice("team-red", "w1", {5001: True, 5002: True, 5003: False})

    async def measured() -> bool:
        labels = {"namespace": "team-red", "endpoint": "w1"}
        return await metric(world.cacher.url, metrics.CACHER_READY_WORKERS, **labels) == 2

    await until(measured)


async def test_others_are_unknown(world: World) -> None:
    world.kube.put("configmaps", registration_map("q2", "team-red", type="async"))
    world.kube.put("configmaps", registration_map("sync", "team-red"))
    await until_known(world, "q2")
    for namespace, name in [
        ("team-red", "sync"),
        ("team-red", "nothing"),
        ("team-blue", "q2"),
        ("default", "q2"),
        ("team-red", ""),
        ("", ""),
    ]:
        assert (await scaling(world.cacher.url, namespace, name))[0] == 404


async def test_an_instance_that_does_not_lead_answers_too(world: World) -> None:
    world.kube.put("configmaps", registration_map("q3", "team-red", type="async"))
    await until_known(world, "q3")
    publish(world.redis, "red", "q3", 2)
    second = await cacher_of(world.postgres, world.database, world.redis, world.kube).start()
    async with served(second):
        await second.ready()
        assert await metric(second.url, "llm_platform_cacher_active") == 0
        assert await scaling(second.url, "team-red", "q3") == (200, {"outstanding": 2})


async def test_what_is_not_known_is_an_error_and_never_zero(
    world: World, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running(RedisServer(tmp_path_factory.mktemp("own-redis"))) as redis:
        cacher = await cacher_of(postgres, world.database, redis, world.kube).start()
        async with served(cacher):
            await cacher.ready()
            world.kube.put("configmaps", registration_map("q4", "team-red", type="async"))

            async def answers(status: int) -> bool:
                return (await scaling(cacher.url, "team-red", "q4"))[0] == status

            await until(lambda: answers(200))
            redis.stop()
            await until(lambda: answers(503))
            assert "outstanding" not in (await scaling(cacher.url, "team-red", "q4"))[1]
            redis.start()
            await until(lambda: answers(200))


async def test_it_answers_while_the_database_is_away(world: World) -> None:
    world.kube.put("configmaps", registration_map("q5", "team-red", type="async"))
    await until_known(world, "q5")
    publish(world.redis, "red", "q5", 1)
    world.postgres.stop()
    try:
        assert await scaling(world.cacher.url, "team-red", "q5") == (200, {"outstanding": 1})
    finally:
        world.postgres.start()


async def test_a_cacher_that_does_not_know_the_cluster_says_so(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = KubeApi(tmp_path_factory.mktemp("nowhere"))
    cacher = await cacher_of(world.postgres, world.database, world.redis, nowhere).start()
    async with served(cacher):
        await cacher.listening()
        assert (await scaling(cacher.url, "team-red", "q1"))[0] == 503


async def test_a_queue_of_somebody_elses_is_refused(world: World) -> None:
    fields = {"type": "async", "queue": "https://sqs.us-east-1.amazonaws.com/1/theirs"}
    world.kube.put("configmaps", registration_map("q6", "team-red", **fields))
    condition = await until(lambda: world.condition("team-red", "q6"))
    assert condition["reason"] == "ForeignQueue"
    assert "queue" in condition["message"]
    assert "q6" not in world.endpoints()
    assert (await scaling(world.cacher.url, "team-red", "q6"))[0] == 404


async def test_only_the_teams_own_queues_below_the_prefix_pass() -> None:
    from services.cacher.errors import ForeignQueue
    from services.cacher.registrations import claim_of

    prefix = "https://sqs.eu-west-1.amazonaws.com/123456789012/llm-platform-"

    def judged(queue: str) -> str:
        item = registration_map("a", "team-red", type="async", queue=queue)
        return claim_of(item, "red", prefix).registration.queue

    assert judged(f"{prefix}red_a") == f"{prefix}red_a"
    assert judged("") == ""
    for foreign in (f"{prefix}blue_a", f"{prefix}red-two_a", f"{prefix}red", "llm-platform-red_a"):
        with pytest.raises(ForeignQueue, match="queue"):
            judged(foreign)


async def test_a_redis_that_refuses_the_password_makes_the_leader_unready(
    world: World, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running(RedisServer(tmp_path_factory.mktemp("closed-redis"))) as redis:
        database = world.postgres.copy_of(migrated)
        cacher = await cacher_of(world.postgres, database, redis, world.kube).start()
        async with served(cacher):
            await cacher.ready()
            redis.command("ACL", "SETUSER", "default", "resetpass", ">another-password")
            redis.command("--pass", "another-password", "CLIENT", "KILL", "TYPE", "normal")

            async def unready() -> bool:
                return not await cacher.is_ready()

            await until(unready, 30)
            assert cacher.said("redis is away")
