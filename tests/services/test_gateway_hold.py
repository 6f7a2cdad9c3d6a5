import asyncio
import contextlib
import io
import json
import math
import time
from typing import Any

import aiohttp
import pytest
from service_harness import Service, metric, registration, served, until
from service_platform import WAITING, Answer, Platform, gateway_of

from components.domain.registration import Registration
from services.core.pool import Address
from services.core.workers import WorkerSet
from services.gateway.directory import Route
from services.gateway.openai_api import budgets
from services.gateway.routing import ToService
from services.gateway.settings import GatewaySettings
from services.gateway.worker_pool import Workers

pytestmark = pytest.mark.asyncio(loop_scope="session")

COLD = {"min_workers": 0, "hold_seconds": 60}


async def worker(platform: Platform, **env: str) -> Service:
    return await platform.new_forwarder(platform.model, **env)


def ask(platform: Platform, **fields: Any) -> asyncio.Task[Answer]:
    return asyncio.create_task(platform.post(**fields))


async def test_a_request_is_held_until_a_worker_is_ready(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)
    assert await quick.waiting() == 0
    asked = ask(quick)
    await quick.held(1)
    starting = await worker(quick)
    quick.set_workers(quick.endpoint, {starting.port: False})
    await quick.routed(quick.endpoint, [])
    assert not asked.done()
    quick.set_workers(quick.endpoint, {starting.port: True})
    answer = await asked
    assert answer.status == 200
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "42"
    await quick.held(0)
    line = await quick.logged(request_id=answer.headers["x-request-id"])
    assert line["held_seconds"] > 0
    assert line["tries"] == 1
    name = "llm_platform_gateway_hold_seconds_count"
    assert await metric(quick.gateway.url, name, endpoint=quick.endpoint) == 1


async def test_at_its_limit_a_held_request_is_a_503_with_retry_after(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, min_workers=0, hold_seconds=1)
    answer = await quick.post()
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.error["code"] == "no_worker"
    assert (await quick.logged(status=503))["held_seconds"] >= 1
    await quick.held(0)


async def test_a_client_that_leaves_while_held_frees_everything(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)
    asked = ask(quick)
    await quick.held(1)
    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    await quick.held(0)
    await until(quick.gateway_idle)
    await quick.logged(status=499, error="ClientGone")
    ready = await worker(quick)
    quick.set_workers(quick.endpoint, {ready.port: True})
    assert (await quick.post()).status == 200
    assert len(quick.model.requests) == 1


async def test_fifty_requests_held_for_one_small_worker_are_all_answered(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD, max_concurrency=4)
    asked = [ask(quick) for _ in range(50)]
    await quick.held(50)
    small = await worker(quick, MAX_CONCURRENCY="4")
    quick.set_workers(quick.endpoint, {small.port: True})
    assert {(await task).status for task in asked} == {200}
    assert len(quick.model.requests) == 50
    await quick.held(0)


async def test_who_came_first_is_served_first(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD, max_concurrency=1)
    asked = []
    for number in range(5):
        asked.append(ask(quick, user=str(number)))
        await quick.held(number + 1)
    small = await worker(quick, MAX_CONCURRENCY="1")
    quick.set_workers(quick.endpoint, {small.port: True})
    assert {(await task).status for task in asked} == {200}
    seen = [json.loads(request["body"])["user"] for request in quick.model.requests]
    assert seen == ["0", "1", "2", "3", "4"]


async def test_newcomers_are_told_of_busy_workers_while_the_held_keep_their_place(
    quick: Platform,
) -> None:
    await quick.add(quick.endpoint, {}, **COLD, max_concurrency=1)
    asked = [ask(quick, do="hold") for _ in range(3)]
    await quick.held(3)
    small = await worker(quick, MAX_CONCURRENCY="1")
    quick.set_workers(quick.endpoint, {small.port: True})
    await quick.held(2)
    await until(lambda: quick.model.open == 1)
    answer = await quick.post()
    assert answer.status == 429
    assert answer.error["code"] == "workers_busy"
    assert int(answer.headers["retry-after"]) >= 1
    quick.model.release.set()
    assert {(await task).status for task in asked} == {200}


async def test_a_place_that_someone_else_frees_is_found(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD, max_concurrency=1)
    small = await worker(quick, MAX_CONCURRENCY="1")
    async with aiohttp.ClientSession() as session:  # as through another gateway
        other = asyncio.create_task(session.post(f"{small.url}/x", json={"do": "hold"}))
        await until(lambda: quick.model.open == 1)
        asked = ask(quick)
        await quick.held(1)
        quick.set_workers(quick.endpoint, {small.port: True})
        await until(lambda: _refused_by(small))
        assert not asked.done()
        quick.model.release.set()
        (await other).close()
        assert (await asked).status == 200


async def _refused_by(forwarder: Service) -> bool:
    name = "llm_platform_forwarder_rejected_total"
    return await metric(forwarder.url, name, reason="full") >= 2


async def test_a_rollout_of_the_only_worker_fails_no_request(quick: Platform) -> None:
    old = await worker(quick)
    await quick.add(quick.endpoint, {old.port: True}, hold_seconds=60, max_concurrency=50)
    statuses: list[int] = []
    rolling = True

    async def client() -> None:
        while rolling:
            statuses.append((await quick.post(do="stream", chunks=3, pause=0.02)).status)

    clients = [asyncio.create_task(client()) for _ in range(6)]
    await until(lambda: len(statuses) > 12)
    old.signal()  # it refuses, then its door is shut, while the slices still call it ready
    assert await old.wait() == 0
    await quick.held(6)
    quick.set_workers(quick.endpoint, {old.port: None})
    new = await worker(quick)
    quick.set_workers(quick.endpoint, {new.port: True})
    before = len(statuses)
    await until(lambda: len(statuses) > before + 12)
    rolling = False
    await asyncio.gather(*clients)
    assert set(statuses) == {200}


async def test_a_cold_start_does_not_count_against_the_requests_own_time(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD, request_timeout_seconds=3)
    asked = ask(quick)
    late = ask(quick, do="hang")
    await quick.held(2)
    began = time.monotonic()
    await until(lambda: time.monotonic() - began > 3.5)
    ready = await worker(quick)
    quick.set_workers(quick.endpoint, {ready.port: True})
    assert (await asked).status == 200
    answer = await late
    assert answer.status == 504
    assert "longer than its limit of 3 s" in answer.error["message"]
    await until(lambda: quick.model.aborted == 1)


async def test_an_endpoint_has_its_gauge_as_long_as_it_is_known(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)

    async def line() -> str:
        async with quick.session() as session, session.get("/metrics") as answer:
            lines = (await answer.text()).splitlines()
        return next((it for it in lines if it.startswith(WAITING) and quick.endpoint in it), "")

    expected = f'{WAITING}{{endpoint="{quick.endpoint}",namespace="team-red"}} 0.0'
    assert await line() == expected
    statement = f"DELETE FROM endpoints WHERE name = '{quick.endpoint}'"  # noqa: S608
    quick.postgres.sql(statement, quick.database)
    quick.redis.command("PUBLISH", "llm-platform:endpoints", "[]")

    async def gone() -> bool:
        return not await line()

    await until(gone)


async def test_a_stopping_gateway_goes_on_holding_and_has_the_last_word(quick: Platform) -> None:
    args = (quick.postgres, quick.database, quick.redis, quick.kube, quick.keys_dir)
    gateway = gateway_of(*args, DRAIN_SECONDS="4", MAX_HELD_BYTES="100000")
    shared, quick.gateway = quick.gateway, gateway
    lucky, unlucky = quick.endpoint, f"{quick.endpoint}-x"
    try:
        async with served(gateway):
            await gateway.start()
            await gateway.ready()
            await quick.add(lucky, {}, **COLD)
            await quick.add(unlucky, {}, **COLD)
            served_late = ask(quick, padding="x" * 60_000)
            await quick.held(1)
            refused = await quick.post(padding="x" * 60_000)
            assert (refused.status, refused.error["code"]) == (503, "gateway_busy")
            given_up = ask(quick, model=unlucky)
            await quick.held(1, unlucky)
            ready = await worker(quick)
            gateway.signal()
            await until(lambda: gateway.said("draining"))
            quick.set_workers(lucky, {ready.port: True})
            assert (await served_late).status == 200
            answer = await given_up
            assert (answer.status, answer.error["code"]) == (503, "no_worker")
            assert int(answer.headers["retry-after"]) >= 1
            assert await gateway.wait() == 0
    finally:
        quick.gateway = shared


async def test_with_a_mesh_the_service_takes_what_ready_workers_can() -> None:
    document = registration("m", max_concurrency=3, service="serving")
    route = Route("m", "red", "team-red", 0, Registration.from_document(document))
    workers = Workers(lambda _address: None, lambda _endpoint, _count: None, None)  # type: ignore[arg-type]
    routing = ToService(workers)
    assert routing.pick(route, []) is None
    assert (routing.ready(route), routing.free(route)) == (False, 0)
    two = frozenset({Address("10.0.0.1", 5000), Address("10.0.0.2", 5000)})
    workers.update({("team-red", "m"): WorkerSet(two, two)})
    first = routing.pick(route, [])
    assert first is not None
    assert str(first.address) == "serving.team-red.svc:80"
    assert routing.pick(route, [first.address]) is first
    assert routing.free(route) == 6
    workers.update({("team-red", "m"): WorkerSet(two, frozenset())})
    assert routing.pick(route, []) is None


async def test_no_inner_default_cuts_a_long_generation() -> None:
    settings = GatewaySettings(database_url="postgresql://x", redis_url="redis://x")
    document = registration("m", request_timeout_seconds=3600)
    route = Route("m", "red", "team-red", 0, Registration.from_document(document))
    given = budgets(route, settings)
    assert (given.first_byte_seconds, given.total_seconds) == (3600, 3600)
    assert given.wall_seconds == math.inf


async def test_a_large_body_is_held_and_sent_whole(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)
    text = json.dumps(quick.body(do="echo", padding="ü" * 500_000)).encode()
    async with quick.session() as session:
        asked = asyncio.create_task(session.post("/v1/completions", data=io.BytesIO(text)))
        await quick.held(1)
        ready = await worker(quick)
        quick.set_workers(quick.endpoint, {ready.port: True})
        async with await asked as answer:
            assert await answer.read() == text
