# ruff: noqa: S608  (the tests' own statements, on the tests' own server)
import asyncio
import contextlib
import hashlib
import json
import signal
import socket
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from openai import APIError, AsyncOpenAI
from service_harness import Model, Service, chunk, free_port, metric, served, serving, until
from service_platform import KEYS, Platform, gateway_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROUTES = [
    "/v1/chat/completions",
    "/v1/completions",
    "/openai/v1/chat/completions",
    "/v1/embeddings",
]


def events(body: bytes) -> list[str]:
    return [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("do", ["stream", "hang"])
async def test_a_disconnect_reaches_the_model_through_both_hops(
    platform: Platform, route: str, do: str
) -> None:
    async with platform.session() as session:
        body = platform.body(do=do, chunks=1000, pause=0.05, stream=do == "stream")
        asking = asyncio.create_task(session.post(route, json=body))
        await until(lambda: platform.model.open == 1)
        if do == "stream":
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
    gone = time.monotonic()
    await until(lambda: platform.model.aborted == 1)
    assert time.monotonic() - gone < 2
    await until(platform.forwarder_idle)
    await until(platform.gateway_idle)
    await platform.logged(status=200 if do == "stream" else 499, error="ClientGone")


async def test_a_full_worker_is_a_429_with_retry_after(platform: Platform) -> None:
    small = await platform.new_forwarder(platform.model, MAX_CONCURRENCY="2")
    platform.set_workers(platform.endpoint, {small.port: True})
    await until(lambda: _only(platform, small))
    asked = [asyncio.create_task(platform.post(do="hold")) for _ in range(5)]
    await until(lambda: sum(task.done() for task in asked) == 3)
    for task in asked:
        if task.done():
            answer = await task
            assert answer.status == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.error["type"] == "rate_limit_error"
            assert answer.error["code"] == "workers_busy"
            assert "x-llm-platform-refused" not in answer.headers
    platform.model.release.set()
    assert sorted([(await task).status for task in asked]) == [200, 200, 429, 429, 429]
    assert len(platform.model.requests) == 2
    rejected = await metric(small.url, "llm_platform_forwarder_rejected_total", reason="full")
    assert rejected == 3


async def _only(platform: Platform, forwarder: Service) -> bool:
    answer = await platform.post()
    platform.model.requests.clear()
    line = await platform.logged(request_id=answer.headers["x-request-id"])
    return answer.status == 200 and line["worker"] == f"127.0.0.1:{forwarder.port}"


async def test_open_streams_hold_their_place_until_the_last_byte(platform: Platform) -> None:
    small = await platform.new_forwarder(platform.model, MAX_CONCURRENCY="1")
    platform.set_workers(platform.endpoint, {small.port: True})
    await until(lambda: _only(platform, small))
    async with platform.session() as session:
        body = platform.body(do="stream", chunks=10_000, pause=0.01, stream=True)
        async with session.post("/v1/chat/completions", json=body) as answer:
            await answer.content.readany()
            assert (await platform.post()).status == 429
            answer.close()
    await until(lambda: _is_ok(platform))


async def _is_ok(platform: Platform) -> bool:
    return (await platform.post()).status == 200


async def test_a_full_worker_is_skipped_while_another_has_room(
    platform: Platform, other: Model
) -> None:
    small = await platform.new_forwarder(platform.model, MAX_CONCURRENCY="1")
    roomy = await platform.new_forwarder(other)
    async with aiohttp.ClientSession() as session:  # not seen by the gateway
        held = asyncio.create_task(session.post(f"{small.url}/x", json={"do": "hold"}))
        await until(lambda: platform.model.open == 1)
        platform.set_workers(platform.endpoint, {small.port: True, roomy.port: True})
        await platform.routed(platform.endpoint, [small.port, roomy.port])
        assert [(await platform.post()).status for _ in range(4)] == [200] * 4
        platform.model.release.set()
        (await held).close()
    assert len(other.requests) >= 4 - 1


async def test_an_accepted_request_is_never_sent_twice(platform: Platform, other: Model) -> None:
    second = await platform.new_forwarder(other)
    platform.set_workers(platform.endpoint, {platform.forwarder.port: True, second.port: True})
    await platform.routed(platform.endpoint, [1, 2])
    answer = await platform.post(do="die silently")
    assert answer.status == 502
    assert answer.error["code"] in {"worker_lost", "model_failed"}
    assert len(platform.model.requests) + len(other.requests) == 1


async def test_a_refused_connection_is_tried_at_other_workers(platform: Platform) -> None:
    workers = {free_port(): True, free_port(): True, platform.forwarder.port: True}
    platform.set_workers(platform.endpoint, workers)
    await platform.routed(platform.endpoint, list(workers))
    assert [(await platform.post()).status for _ in range(6)] == [200] * 6
    assert len(platform.model.requests) == 6


async def test_after_three_refused_connections_the_answer_is_503(platform: Platform) -> None:
    workers: dict[int, bool | None] = {free_port(): True for _ in range(5)}
    platform.set_workers(platform.endpoint, workers)
    await platform.routed(platform.endpoint, list(workers))
    answer = await platform.post()
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
    line = await platform.logged(request_id=answer.headers["x-request-id"])
    assert line["tries"] == 3


async def test_an_endpoint_without_workers_is_a_503_with_retry_after(platform: Platform) -> None:
    platform.set_workers(platform.endpoint, {platform.forwarder.port: False})
    await platform.routed(platform.endpoint, [])
    answer = await platform.post()
    assert answer.status == 503
    assert answer.error["code"] == "no_worker"
    assert int(answer.headers["retry-after"]) >= 1
    assert platform.model.requests == []


async def test_a_model_whose_server_is_gone_is_a_503(platform: Platform) -> None:
    await platform.model.stop()
    answer = await platform.post()
    assert answer.status == 503
    assert "retry-after" in answer.headers


async def test_a_stream_that_breaks_ends_with_an_error_event(platform: Platform) -> None:
    answer = await platform.post(do="die", stream=True)
    assert answer.status == 200
    first, error = events(answer.body)
    assert first == "{}"
    assert json.loads(error)["error"]["code"] in {"model_failed", "worker_lost"}


async def test_a_stream_that_breaks_within_an_event_still_tells_the_error(
    platform: Platform,
) -> None:
    answer = await platform.post(do="die", stream=True, first='data: {"half')
    half, error = events(answer.body)
    assert half == '{"half'
    assert json.loads(error)["error"]["message"]


async def test_the_openai_client_sees_the_error_of_a_broken_stream(platform: Platform) -> None:
    url = f"{platform.gateway.url}/v1"
    async with AsyncOpenAI(base_url=url, api_key=KEYS["red"], max_retries=0) as client:
        stream = await client.chat.completions.create(
            **platform.body(),
            stream=True,
            extra_body={"do": "die", "first": chunk(0).decode()},
        )
        first = await anext(stream)
        with pytest.raises(APIError, match="failed"):
            await anext(stream)
    assert first.choices[0].delta.content == "word0 "


class SilentWorker:
    """A worker that takes requests and never says anything, like a node whose network is gone."""

    def __init__(self) -> None:
        self.head = b""
        self.port = 0
        self.taken = 0
        self.closed = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.taken += 1
        writer.write(self.head)
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        self.closed += 1
        writer.close()

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()


@pytest_asyncio.fixture(loop_scope="session")
async def silent() -> AsyncIterator[SilentWorker]:
    async with serving(SilentWorker()) as worker:
        yield worker


async def test_requests_at_a_vanished_worker_end_at_once(
    platform: Platform, silent: SilentWorker
) -> None:
    port = silent.port
    platform.set_workers(platform.endpoint, {port: True})
    await until(lambda: _reaches(platform, silent))
    whole = asyncio.create_task(platform.post())
    await until(lambda: silent.taken == 2)
    platform.set_workers(platform.endpoint, {port: None})  # ending: may still answer
    platform.set_workers(platform.endpoint, {port: None, platform.forwarder.port: True})
    assert (await platform.post()).status == 200
    assert not whole.done()
    gone = time.monotonic()
    platform.set_workers(platform.endpoint, {platform.forwarder.port: True})
    answer = await whole
    assert time.monotonic() - gone < 2
    assert answer.status == 503
    assert answer.error["code"] == "worker_lost"
    assert "retry-after" in answer.headers
    await until(lambda: silent.closed == silent.taken)


async def _reaches(platform: Platform, silent: SilentWorker) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await platform.post()
    return silent.taken == 1


async def test_a_stream_at_a_vanished_worker_ends_with_an_error_event(
    platform: Platform, silent: SilentWorker
) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    silent.head = head + b"9\r\ndata: 1\n\n\r\n"
    platform.set_workers(platform.endpoint, {silent.port: True})
    await platform.routed(platform.endpoint, [1])
    async with platform.session() as session:

        async def first() -> aiohttp.ClientResponse | None:
            answer = await session.post("/v1/chat/completions", json=platform.body(stream=True))
            if silent.taken:
                return answer
            answer.close()
            return None

        answer = await until(first)
        assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
        platform.set_workers(platform.endpoint, {})
        (error,) = events(await answer.read())
        assert json.loads(error)["error"]["code"] == "worker_lost"


async def test_each_time_budget_ends_the_request_and_closes_the_upstream(
    platform: Platform,
) -> None:
    name = f"{platform.endpoint}-t"
    await platform.add(name, {platform.forwarder.port: True}, request_timeout_seconds=1)
    answer = await platform.post(model=name, do="hang")
    assert answer.status == 504
    assert answer.error["code"] == "timeout"
    await until(lambda: platform.model.aborted == 1)
    stream = await platform.post(model=name, do="stream", chunks=10_000, pause=0.02, stream=True)
    assert "longer than its limit" in json.loads(events(stream.body)[-1])["error"]["message"]
    await until(lambda: platform.model.aborted == 2)
    assert len(platform.model.requests) == 2


async def test_silence_ends_a_stream_and_steady_chunks_do_not(platform: Platform) -> None:
    env = {"IDLE_TIMEOUT_SECONDS": "0.8"}
    args = (platform.postgres, platform.database, platform.redis, platform.kube, platform.keys_dir)
    gateway = gateway_of(*args, **env)
    shared, platform.gateway = platform.gateway, gateway
    try:
        async with served(gateway):
            await gateway.start()
            await gateway.ready()
            await platform.routed(platform.endpoint, [platform.forwarder.port])
            steady = await platform.post(do="stream", chunks=20, pause=0.1, stream=True)
            assert events(steady.body)[-1] == "[DONE]"
            silent = await platform.post(do="stream", chunks=2, pause=5, stream=True)
            error = json.loads(events(silent.body)[-1])["error"]
            assert "the answer stopped for 0.8 s" in error["message"]
            await until(lambda: platform.model.aborted == 1)
    finally:
        platform.gateway = shared


async def test_an_outage_of_postgres_and_redis_does_not_stop_requests(platform: Platform) -> None:
    platform.postgres.stop()
    platform.redis.stop()
    try:
        await until(lambda: platform.gateway.said("keys and endpoints can't be loaded"))
        assert (await platform.post()).status == 200
        assert (await platform.post(model="missing")).status == 404
        assert await platform.gateway.is_ready()
    finally:
        platform.postgres.start()
        platform.redis.start()
    name = f"{platform.endpoint}-after"
    await platform.add(name, {platform.forwarder.port: True})
    assert (await platform.post(model=name)).status == 200


async def test_a_gateway_started_in_an_outage_becomes_ready_by_itself(platform: Platform) -> None:
    args = (platform.postgres, platform.database, platform.redis, platform.kube, platform.keys_dir)
    gateway = gateway_of(*args)
    platform.postgres.stop()
    platform.redis.stop()
    await platform.kube.stop()
    try:
        async with served(gateway):
            await gateway.start()
            await gateway.listening()
            await until(lambda: gateway.said("keys and endpoints can't be loaded"))
            assert not await gateway.is_ready()
            async with aiohttp.ClientSession(gateway.url, headers=platform.headers()) as session:
                async with session.get("/healthz") as answer:
                    assert answer.status == 200
                async with session.post("/v1/completions", json=platform.body()) as answer:
                    assert answer.status == 503
            platform.postgres.start()
            platform.redis.start()
            await platform.kube.start()
            await gateway.ready()
    finally:
        await _restore(platform)


async def _restore(platform: Platform) -> None:
    for server in (platform.postgres, platform.redis):
        if not server.running:
            server.start()
    if not platform.kube.running:
        await platform.kube.start()


async def test_a_watch_that_is_too_old_lists_again(platform: Platform) -> None:
    port = free_port()
    lists = len(platform.kube.lists)
    platform.kube.pause_events()
    platform.set_workers(platform.endpoint, {platform.forwarder.port: True, port: True})
    platform.kube.forget_history()
    platform.kube.cut_watches()
    await platform.routed(platform.endpoint, [platform.forwarder.port, port])
    assert len(platform.kube.lists) == lists + 1


async def test_a_cut_watch_goes_on_from_where_it_was(platform: Platform) -> None:
    lists = len(platform.kube.lists)
    platform.kube.cut_watches()
    port = free_port()
    platform.set_workers(platform.endpoint, {platform.forwarder.port: True, port: True})
    await platform.routed(platform.endpoint, [platform.forwarder.port, port])
    assert len(platform.kube.lists) == lists


async def test_a_revoked_and_an_expired_key_are_refused(platform: Platform) -> None:
    key = "lp-a-key-to-be-revoked-that-is-long-enough"
    digest = hashlib.sha256(key.encode()).hexdigest()
    columns = "prefix, hash, team, role, declared"
    insert = f"INSERT INTO api_keys ({columns}) VALUES ('lp-a', '{digest}', 'red', 'team', false)"
    platform.postgres.sql(insert, platform.database)

    async def status() -> int:
        platform.redis.command("PUBLISH", "llm-platform:keys", "")
        headers = {"authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession(platform.gateway.url, headers=headers) as session,
            session.get("/v1/models") as answer,
        ):
            return answer.status

    async def is_(expected: int) -> bool:
        return await status() == expected

    def change(what: str) -> None:
        update = f"UPDATE api_keys SET {what} WHERE hash = '{digest}'"
        platform.postgres.sql(update, platform.database)

    await until(lambda: is_(200))
    change("expires_at = now()")
    await until(lambda: is_(401))
    change("expires_at = NULL")
    await until(lambda: is_(200))
    change("revoked_at = now()")
    await until(lambda: is_(401))


async def test_declared_keys_are_hashed_and_follow_their_files(platform: Platform) -> None:
    old, new = KEYS["blue"], "lp-a-new-key-for-blue-that-is-long-enough"
    assert (await platform.post(team="blue", model="none")).status == 404
    (platform.keys_dir / "blue").write_text(new + "\n")
    try:
        KEYS["blue"] = new

        async def works() -> bool:
            return (await platform.post(team="blue", model="none")).status == 404

        await until(works)
        KEYS["blue"] = old
        assert (await platform.post(team="blue", model="none")).status == 401
        dump = platform.postgres.dump(platform.database)
        assert "api_keys" in dump
        for key in (*KEYS.values(), new):
            assert key not in dump
            assert key[12:] not in dump
    finally:
        KEYS["blue"] = old
        (platform.keys_dir / "blue").write_text(old)
        await until(works)


async def test_a_removed_endpoint_is_a_404(platform: Platform) -> None:
    platform.postgres.sql(
        f"DELETE FROM endpoints WHERE name = '{platform.endpoint}'", platform.database
    )

    async def gone() -> bool:
        return (await platform.post()).status == 404

    await until(gone)


async def test_an_absent_endpoint_is_neither_routed_nor_listed(platform: Platform) -> None:
    platform.postgres.sql(
        f"UPDATE endpoints SET status = 'absent' WHERE name = '{platform.endpoint}'",
        platform.database,
    )

    async def gone() -> bool:
        return (await platform.post()).status == 404

    await until(gone)
    async with platform.session() as session, session.get("/v1/models") as answer:
        assert platform.endpoint not in [item["id"] for item in (await answer.json())["data"]]


async def test_a_field_of_a_newer_version_leaves_an_endpoint_in(platform: Platform) -> None:
    name = f"{platform.endpoint}-newer"
    await platform.add(name, {platform.forwarder.port: True}, surprise=1)
    assert (await platform.post(model=name)).status == 200


async def test_sigterm_lets_an_open_stream_end_complete(platform: Platform) -> None:
    args = (platform.postgres, platform.database, platform.redis, platform.kube, platform.keys_dir)
    gateway = gateway_of(*args)
    shared, platform.gateway = platform.gateway, gateway
    try:
        async with served(gateway):
            await gateway.start()
            await gateway.ready()
            await platform.routed(platform.endpoint, [platform.forwarder.port])
            asking = asyncio.create_task(
                platform.post(do="stream", chunks=30, pause=0.05, stream=True)
            )
            await until(lambda: platform.model.open == 1)
            gateway.signal(signal.SIGTERM)
            await until(lambda: gateway.said("draining"))
            answer = await asking
            assert events(answer.body)[-1] == "[DONE]"
            assert answer.body.count(b"word") == 30
            assert await gateway.wait() == 0
    finally:
        platform.gateway = shared


async def test_a_client_that_never_sends_its_body_does_not_count_as_a_request_for_ever(
    platform: Platform,
) -> None:
    sock = socket.create_connection(("127.0.0.1", platform.gateway.port))
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEYS['red']}\r\n"
    sock.sendall(f"{head}Content-Length: 100\r\n\r\n".encode())
    await until(lambda: _in_flight(platform, 1))
    sock.close()
    await until(platform.gateway_idle)


async def _in_flight(platform: Platform, count: int) -> bool:
    return await metric(platform.gateway.url, "llm_platform_gateway_in_flight") == count
