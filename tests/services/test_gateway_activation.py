import asyncio
import contextlib

import pytest
from service_harness import until
from service_platform import Platform

from components.domain.keys import activation_key

pytestmark = pytest.mark.asyncio(loop_scope="session")

COLD = {"min_workers": 0, "hold_seconds": 60}
EXPIRY_SECONDS = 3


class List:
    """An endpoint's activation list, as the autoscaler sees it."""

    def __init__(self, platform: Platform, name: str = "") -> None:
        self._redis = platform.redis
        self._key = activation_key("team-red", name or platform.endpoint)

    def length(self) -> int:
        return int(self._redis.command("LLEN", self._key))

    def lives_seconds(self) -> float:
        return int(self._redis.command("PTTL", self._key)) / 1000

    def renewed(self) -> bool:
        return self.lives_seconds() > EXPIRY_SECONDS - 0.4


async def test_a_held_request_wakes_its_endpoint_until_nobody_asks(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)
    wanted = List(quick)
    assert wanted.length() == 0
    asked = [asyncio.create_task(quick.post()) for _ in range(20)]
    await quick.held(20)
    await until(lambda: wanted.length() == 1)
    assert 0 < wanted.lives_seconds() <= EXPIRY_SECONDS
    ready = await quick.new_forwarder(quick.model)
    quick.set_workers(quick.endpoint, {ready.port: True})
    assert {(await task).status for task in asked} == {200}
    assert wanted.length() == 1
    await until(lambda: wanted.length() == 0)


async def test_an_open_stream_keeps_its_endpoint_for_longer_than_the_expiry(
    quick: Platform,
) -> None:
    ready = await quick.new_forwarder(quick.model)
    await quick.add(quick.endpoint, {ready.port: True}, **COLD)
    wanted = List(quick)
    async with quick.session() as session:
        body = quick.body(do="stream", chunks=100_000, pause=0.05, stream=True)
        async with session.post("/v1/chat/completions", json=body) as answer:
            await answer.content.readany()
            loop = asyncio.get_running_loop()
            began = loop.time()
            renewals = 0
            while loop.time() - began < EXPIRY_SECONDS * 1.5:
                assert await until(wanted.length) == 1
                await until(wanted.renewed)
                renewals += 1
                await answer.content.readany()
            assert renewals > 1
            answer.close()
    await until(lambda: wanted.length() == 0)


async def test_an_endpoint_that_always_has_workers_is_never_woken(quick: Platform) -> None:
    ready = await quick.new_forwarder(quick.model)
    await quick.add(quick.endpoint, {ready.port: True})
    cold = f"{quick.endpoint}-c"
    await quick.add(cold, {ready.port: True}, **COLD)
    assert (await quick.post()).status == 200
    assert (await quick.post(model=cold)).status == 200
    await until(lambda: List(quick, cold).length() == 1)
    assert List(quick).length() == 0


async def test_redis_may_be_away_while_requests_are_held(quick: Platform) -> None:
    await quick.add(quick.endpoint, {}, **COLD)
    gone = f"{quick.endpoint}-gone"
    await quick.add(gone, {}, **COLD)
    quick.redis.stop()
    try:
        said = len(quick.gateway.said("endpoints can't be woken"))
        asked = asyncio.create_task(quick.post())
        leaves = asyncio.create_task(quick.post(model=gone))
        await quick.held(1)
        await quick.held(1, gone)
        await until(lambda: len(quick.gateway.said("endpoints can't be woken")) > said)
        leaves.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaves
        await quick.held(0, gone)
    finally:
        quick.redis.start()
    await until(lambda: List(quick).length() == 1)
    assert List(quick, gone).length() == 0
    ready = await quick.new_forwarder(quick.model)
    quick.set_workers(quick.endpoint, {ready.port: True})
    assert (await asked).status == 200
