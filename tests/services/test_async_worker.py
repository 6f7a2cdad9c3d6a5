import asyncio
import signal
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from service_harness import Model, RedisServer, Service, free_port, metric, running, until
from task_harness import TEAM, TOKEN, StubGateway, Tasks, said

from services.core.broker.base import BrokerUnfit, TaskQueue
from services.core.broker.redis import RedisBroker

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def tasks_on(redis: RedisServer, model: Model) -> Tasks:
    gateway = await StubGateway().start()
    queue = TaskQueue(TEAM, f"t{uuid.uuid4().hex[:8]}")
    env = {"BROKER": "redis", "BROKER_URL": redis.url}
    return Tasks(RedisBroker(redis.url), queue, gateway, model, env)


@pytest_asyncio.fixture(loop_scope="session")
async def tasks(redis_server: RedisServer, model: Model) -> AsyncIterator[Tasks]:
    it = await tasks_on(redis_server, model)
    yield it
    await it.close()


def keys(redis: RedisServer, tasks: Tasks) -> list[str]:
    return redis.command("KEYS", tasks.queue.prefix + "*").split()


async def exited(worker: Service) -> None:
    assert await worker.wait(60) == 0, worker.raw


async def test_each_of_two_hundred_tasks_has_exactly_one_result(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    workers = [await tasks.worker() for _ in range(2)]
    ids = [await tasks.send({"n": number, "text": "payload-canary"}) for number in range(200)]
    await until(lambda: len(tasks.gateway.results) == len(ids), 90)
    await until(tasks.nothing_left)
    assert set(tasks.gateway.results) == set(ids)
    assert all(result["status"] == "SUCCESS" for result in tasks.gateway.results.values())
    assert {tasks.gateway.puts[task_id] for task_id in ids} == {1}
    assert {tasks.asked(task_id) for task_id in ids} == {1}
    # One client for all tasks of a process: no more connections than tasks at once.
    assert len(tasks.gateway.peers) <= 2 * 8
    assert keys(redis_server, tasks) == []
    for worker in workers:
        assert "payload-canary" not in said(worker)
        assert TOKEN not in said(worker)
        prefix = "llm_platform_forwarder"
        assert await metric(worker.url, f"{prefix}_in_flight") == 0
        done = await metric(worker.url, f"{prefix}_tasks_total", outcome="done")
        assert done == len(worker.said("task")) > 0


async def test_a_killed_workers_task_is_finished_by_another(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    first = await tasks.worker(LEASE_SECONDS="2")
    task_id = await tasks.send({"do": "hold"})
    await until(lambda: tasks.model.open == 1)
    assert await metric(first.url, "llm_platform_forwarder_in_flight") == 1
    first.signal(signal.SIGKILL)
    await until(lambda: tasks.model.aborted == 1)
    assert await tasks.outstanding() == 1
    tasks.model.release.set()
    await tasks.worker(LEASE_SECONDS="2")
    assert (await tasks.result(task_id))["status"] == "SUCCESS"
    assert tasks.asked(task_id) == 2
    await until(tasks.nothing_left)
    assert keys(redis_server, tasks) == []


async def test_a_task_of_many_leases_runs_once_while_another_worker_idles(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    lease = 2
    await tasks.worker(LEASE_SECONDS=str(lease))
    await tasks.worker(LEASE_SECONDS=str(lease))
    task_id = await tasks.send({"do": "hold"})
    await until(lambda: tasks.model.open == 1)

    def end() -> float:
        ends = tasks.queue.prefix + "unacked_index"
        return float(redis_server.command("ZRANGE", ends, "0", "-1", "WITHSCORES").split()[1])

    first = end()
    await until(lambda: end() >= first + 3 * 1000 * lease, 60)
    tasks.model.release.set()
    await tasks.result(task_id)
    await until(tasks.nothing_left)
    assert tasks.asked(task_id) == 1
    assert tasks.gateway.puts[task_id] == 1


async def test_sigterm_finishes_what_runs_and_takes_nothing_more(tasks: Tasks) -> None:
    worker = await tasks.worker()
    running_id = await tasks.send({"do": "hold"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGTERM)
    await until(lambda: worker.said("draining"))
    waiting_id = await tasks.send({})
    tasks.model.release.set()
    await tasks.result(running_id)
    await exited(worker)
    assert waiting_id not in tasks.gateway.started
    assert await tasks.outstanding() == 1


async def test_sigterm_puts_back_at_once_what_cant_be_finished(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    worker = await tasks.worker(DRAIN_SECONDS="0.5", LEASE_SECONDS="600")
    task_id = await tasks.send({"do": "hang"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGTERM)
    await exited(worker)
    await until(lambda: tasks.model.aborted == 1)
    # It waits again, long before its lease ends, and its end isn't held against it.
    assert redis_server.command("LLEN", tasks.queue.name) == "1"
    assert redis_server.command("HVALS", tasks.queue.prefix + "deliveries") == "0"
    tasks.model.release.set()
    await tasks.worker(LEASE_SECONDS="600")
    assert (await tasks.result(task_id))["status"] == "SUCCESS"


async def test_a_model_that_ends_with_its_worker_puts_the_task_back(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    worker = await tasks.worker()
    await tasks.send({"do": "hang"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGTERM)
    await until(lambda: worker.said("draining"))
    await tasks.model.vanish()
    await exited(worker)
    assert tasks.gateway.results == {}
    assert redis_server.command("LLEN", tasks.queue.name) == "1"


async def test_a_task_delivered_too_often_is_a_dead_letter_that_can_be_sent_again(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    settings = {"LEASE_SECONDS": "1", "MAX_DELIVERIES": "1"}
    worker = await tasks.worker(**settings)
    task_id = await tasks.send({"do": "hang"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGKILL)
    await until(lambda: tasks.model.aborted == 1)
    await tasks.worker(**settings)
    result = await tasks.result(task_id)
    assert result["status"] == "FAILURE"
    assert "dead-lettered after 2 deliveries" in result["result"]
    await until(tasks.nothing_left)
    assert await tasks.dead() == [task_id]
    assert tasks.asked(task_id) == 1

    tasks.gateway.reopen(task_id)
    tasks.model.release.set()
    assert await tasks.redrive("another") == []
    assert await tasks.redrive(task_id) == [task_id]
    assert (await tasks.result(task_id))["status"] == "SUCCESS"
    await until(tasks.nothing_left)
    assert await tasks.dead() == []
    assert keys(redis_server, tasks) == []


async def test_what_became_of_tasks_that_failed(tasks: Tasks) -> None:
    schema = '{"pre": [{"kind": "validation", "schema": {"required": ["do"]}}]}'
    worker = await tasks.worker(REQUEST_TIMEOUT_SECONDS="5", HOOKS=schema)
    expired = await tasks.send({"do": "answer"}, expires_at=time.time() - 1)
    refused = await tasks.send({"do": "status", "status": 400})
    failed = await tasks.send({"do": "status", "status": 500})
    invalid = await tasks.send({"text": "payload-canary"})
    broken = await tasks.send({"do": "die silently"})
    missing = await tasks.send()
    expected = {expired: 408, refused: 400, failed: 500, invalid: 422, broken: 502}
    for task_id, status in expected.items():
        result = await tasks.result(task_id)
        assert (result["status"], result["status_code"]) == ("FAILURE", status)
    assert tasks.gateway.results[refused]["result"] == {"error": {"message": "mine"}}
    assert "'do' is a required property" in tasks.gateway.results[invalid]["result"]
    assert tasks.asked(expired) == tasks.asked(invalid) == 0
    assert tasks.asked(broken) == 3
    assert (await tasks.result(missing))["status"] == "FAILURE"
    slow = await tasks.send({"do": "hang"})
    assert (await tasks.result(slow))["status_code"] == 504
    await until(tasks.nothing_left)
    # It may be what ends the model: people can look at it, and send it again.
    assert await tasks.dead() == [broken]
    assert "payload-canary" not in said(worker)


async def test_a_task_that_ends_the_model_takes_no_other_with_it(tasks: Tasks) -> None:
    others = [await tasks.send({"do": "hold"}) for _ in range(3)]
    await tasks.worker(MAX_CONCURRENCY="4")
    await until(lambda: tasks.model.open == 3)
    poison = await tasks.send({"do": "crash"})
    await until(lambda: tasks.model.aborted >= 3)
    tasks.model.release.set()
    result = await tasks.result(poison)
    assert (result["status"], result["status_code"]) == ("FAILURE", 502)
    for task_id in others:
        assert (await tasks.result(task_id))["status"] == "SUCCESS"
    await until(tasks.nothing_left)
    assert await tasks.dead() == [poison]


async def test_a_large_payload_is_fetched_by_reference(tasks: Tasks) -> None:
    tasks.model.healthy = False
    worker = await tasks.worker(ready=False)
    task_id = await tasks.send(payload_url="http://elsewhere.invalid/")
    payload = b'{"do": "echo", "text": "' + b"x" * 500_000 + b'"}'
    tasks.gateway.payloads[task_id] = payload
    # Nothing is taken while the model isn't healthy.
    await until(lambda: worker.said("taking tasks"), 60)
    assert tasks.gateway.started == []
    assert await tasks.outstanding() == 1
    tasks.model.healthy = True
    assert (await tasks.result(task_id))["status"] == "SUCCESS"
    assert tasks.model.requests[-1]["body"] == payload


async def test_a_result_waits_for_a_gateway_that_is_away(tasks: Tasks) -> None:
    worker = await tasks.worker(LEASE_SECONDS="1")
    await tasks.gateway.stop()
    task_id = await tasks.send({})
    await until(lambda: len(worker.said("the gateway is away")) == 2)
    await tasks.gateway.start()
    await tasks.result(task_id)
    await until(tasks.nothing_left)
    assert tasks.asked(task_id) == 1
    assert tasks.gateway.puts[task_id] == 1


async def test_a_task_that_has_its_result_isnt_run_again(tasks: Tasks) -> None:
    task_id = await tasks.send({})
    tasks.gateway.results[task_id] = {"status": "SUCCESS"}
    await tasks.worker()
    await until(tasks.nothing_left)
    assert tasks.asked(task_id) == 0


async def test_workers_go_on_after_the_broker_was_away(model: Model, tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as redis:
        tasks = await tasks_on(redis, model)
        try:
            await tasks.worker()
            first = await tasks.send({"do": "hold"})
            await until(lambda: tasks.model.open == 1)
            redis.stop()
            tasks.model.release.set()
            assert (await tasks.result(first))["status"] == "SUCCESS"
            redis.start()
            second = await tasks.send({})
            assert (await tasks.result(second))["status"] == "SUCCESS"
            await until(tasks.nothing_left)
        finally:
            await tasks.close()


async def test_a_message_that_is_no_task_goes_to_the_dead_letters_unseen(
    tasks: Tasks, redis_server: RedisServer
) -> None:
    strange = '{"headers": {"id": "x", "task": "os.system"}, "properties": {}, "body": "canary"}'
    for message in ("canary that isn't json", "{}", strange):
        redis_server.command("LPUSH", tasks.queue.name, message)
    worker = await tasks.worker()
    dead = tasks.queue.prefix + "dead"
    await until(lambda: redis_server.command("LLEN", dead) == "3")
    task_id = await tasks.send({})
    await tasks.result(task_id)
    assert "canary" not in said(worker)


async def test_a_worker_of_tasks_answers_no_requests(tasks: Tasks) -> None:
    worker = await tasks.worker()
    async with aiohttp.ClientSession(worker.url) as session:
        async with session.post("/predict", json={}) as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]["code"] == "tasks_only"
        for path in ("/healthz", "/readyz", "/livez/model", "/metrics"):
            async with session.get(path) as answer:
                assert answer.status == 200


async def test_a_redis_in_cluster_mode_is_refused(tasks: Tasks, tmp_path: Path) -> None:
    port = free_port()
    options = ["--cluster-enabled", "yes", "--port", str(port), "--dir", str(tmp_path)]
    address = ["--bind", "127.0.0.1", "--cluster-port", str(free_port())]
    command = ["redis-server", *options, *address]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    broker = RedisBroker(url)
    try:
        await until((tmp_path / "nodes.conf").exists)
        await until(lambda: _unfit(broker))
        worker = await tasks.worker(ready=False, BROKER_URL=url)
        await until(lambda: worker.said("the broker can't be used"))
        assert not await worker.is_ready()
    finally:
        process.terminate()
        await process.wait()
        broker.close()


def _unfit(broker: RedisBroker) -> bool:
    try:
        broker.check()
    except BrokerUnfit as error:
        return "cluster mode" in str(error)
    except Exception:
        return False
    return False
