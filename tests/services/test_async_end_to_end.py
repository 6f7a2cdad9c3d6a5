import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from service_harness import Model, Service, served, serving, until
from service_platform import forwarder_of
from test_async_gateway import CALLBACK_HOST, World, buckets, one_world, world

__all__ = ["buckets", "one_world", "world"]

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


class Listener:
    """Somebody who wants to be told of results."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> "Listener":
        app = web.Application()
        app.router.add_post("/told", self._told)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, CALLBACK_HOST, 0).start()
        self.url = f"http://{CALLBACK_HOST}:{self._runner.addresses[0][1]}/told"
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _told(self, request: web.Request) -> web.Response:
        self.heard.append(await request.json())
        return web.json_response({})


@pytest_asyncio.fixture(loop_scope="session")
async def listener() -> AsyncIterator[Listener]:
    async with serving(Listener()) as server:
        yield server


def worker_of(world: World, model: Model, **env: str) -> Service:
    defaults = {
        "MODE": "async",
        "ENDPOINT": world.endpoint,
        "TEAM": "red",
        "BROKER": "redis",
        "BROKER_URL": world.redis.url,
        "GATEWAY_URL": world.gateway.url,
        "LEASE_SECONDS": "10",
        "MAX_CONCURRENCY": "8",
        "CALLBACK_ALLOW": CALLBACK_HOST,
    }
    return forwarder_of(model, **{**defaults, **env})


async def test_a_hundred_tasks_are_each_answered_and_told(
    world: World, model: Model, listener: Listener
) -> None:
    ids: list[str] = []
    for number in range(100):
        answer = await world.post({"do": "echo", "number": number}, callback_url=listener.url)
        assert answer.status == 200, answer.body
        ids.append(answer.json["task_id"])
    worker = await worker_of(world, model).start()
    async with served(worker):
        # A task's callback comes after its result.
        await until(lambda: {item["task_id"] for item in listener.heard} >= set(ids), 120)
        for number, each in enumerate(ids):
            told = (await world.get(each)).json
            assert told["status"] == "SUCCESS"
            assert json.loads(told["result"]["result"]) == {"do": "echo", "number": number}
        worker.signal()
        assert await worker.wait(60) == 0
    assert world.waiting() == 0
    asked = [json.loads(request["body"])["number"] for request in model.requests]
    assert sorted(set(asked)) == list(range(100))


async def test_a_task_that_kills_its_workers_ends_as_a_dead_letter_and_can_be_sent_again(
    world: World, model: Model
) -> None:
    task_id = (await world.post({"do": "hang"})).json["task_id"]
    env = {"LEASE_SECONDS": "3", "MAX_DELIVERIES": "1"}
    first = await worker_of(world, model, **env).start()
    async with served(first):
        await until(lambda: model.open == 1, 60)
        assert (await world.get(task_id)).json["status"] == "STARTED"
        first.signal(signal.SIGKILL)
        await first.wait()
    second = await worker_of(world, model, **env).start()
    async with served(second):

        async def dead() -> bool:
            path = f"/v1/async-tasks/dead-letters?model_endpoint_id={world.endpoint}"
            found = (await world.ask("GET", path)).json["dead_letters"]
            return [letter["task_id"] for letter in found] == [task_id]

        await until(dead, 120)
        told = (await world.get(task_id)).json
        assert told["status"] == "FAILURE"
        assert "dead-lettered" in told["result"]
        model.release.set()
        path = f"/v1/async-tasks/dead-letters/redrive?model_endpoint_id={world.endpoint}"
        assert (await world.ask("POST", path)).json == {"redriven": [task_id]}

        async def done() -> bool:
            return (await world.get(task_id)).json["status"] == "SUCCESS"

        await until(done, 60)
