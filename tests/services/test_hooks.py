import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from service_harness import Model, RedisServer, Service, chunk, metric, serving, until
from service_platform import forwarder_of
from task_harness import START_SECONDS, StubGateway, Tasks, said
from test_async_worker import tasks_on

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOOKS = "llm_platform_forwarder_hooks_total"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {"type": "array", "items": {"$ref": "#/$defs/message"}},
        "temperature": {"type": "number", "maximum": 2},
    },
    "$defs": {"message": {"type": "object", "required": ["role"]}},
}
GOOD: dict[str, Any] = {"messages": [{"role": "user"}]}


def hooks_for(gateway: StubGateway) -> str:
    callback = {"kind": "callback", "url": f"{gateway.url}/callback"}
    pre = [{"kind": "validation", "schema": SCHEMA}]
    return json.dumps({"pre": pre, "post": [callback, {"kind": "logging"}]})


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[StubGateway]:
    async with serving(StubGateway()) as gateway:
        yield gateway


@pytest_asyncio.fixture(loop_scope="session")
async def hooked(model: Model, receiver: StubGateway) -> AsyncIterator[Service]:
    """A forwarder of requests with every kind of hook."""
    service = forwarder_of(
        model,
        HOOKS=hooks_for(receiver),
        CALLBACK_ALLOW="127.0.0.1",
        CALLBACK_RETRY_SECONDS="0.05",
        MAX_BODY_BYTES="100000",
    )
    await service.start()
    await until(lambda: service.port, START_SECONDS)
    yield await service.ready()
    await service.stop()


async def refused(session: aiohttp.ClientSession, body: bytes) -> dict[str, Any]:
    async with session.post("/v1/chat/completions", data=body) as answer:
        assert answer.status == 422
        return (await answer.json())["error"]


async def test_requests_are_checked_before_the_model_sees_them(
    hooked: Service, model: Model
) -> None:
    async with aiohttp.ClientSession(hooked.url) as session:
        error = await refused(session, json.dumps({"messages": [{"role": "a"}, {}]}).encode())
        assert error["message"] == "$.messages[1]: 'role' is a required property"
        assert error["type"] == "invalid_request_error"
        assert (
            "$.temperature"
            in (await refused(session, json.dumps({**GOOD, "temperature": 3}).encode()))["message"]
        )
        assert "JSON" in (await refused(session, b"{"))["message"]
        await refused(session, b'{"messages": [' + b"[" * 20_000)
        async with session.post("/x", data=b"x" * 200_000) as answer:
            assert answer.status == 413
        assert model.requests == []
        body = json.dumps({**GOOD, "text": "ä" * 30_000}, ensure_ascii=False).encode()
        async with session.post("/a?b=c", data=body) as answer:
            assert answer.status == 200
        assert model.requests[0]["body"] == body
        assert model.requests[0]["path"] == "/a?b=c"

        async def parts() -> AsyncIterator[bytes]:
            for number in range(0, len(body), 1000):
                yield body[number : number + 1000]

        async with session.post("/chunked", data=parts()) as answer:
            assert answer.status == 200
        assert model.requests[1]["body"] == body
        async with session.get("/v1/models") as answer:  # it has no body to check
            assert answer.status == 200
    assert await metric(hooked.url, HOOKS, hook="validation", outcome="refused") == 4
    assert await metric(hooked.url, HOOKS, hook="validation", outcome="passed") == 2


async def test_an_answer_is_told_and_logged_without_its_words(
    hooked: Service, receiver: StubGateway
) -> None:
    receiver.callback_statuses = [500, 302]
    headers = {"x-request-id": "r-1"}
    async with (
        aiohttp.ClientSession(hooked.url) as session,
        session.post("/x", json={**GOOD, "do": "canary"}, headers=headers) as answer,
    ):
        body = await answer.json()
    await until(lambda: len(receiver.callbacks) == 3)
    told = receiver.callbacks[-1]
    assert told["request_id"] == "r-1"
    assert (told["kind"], told["status"], told["status_code"]) == ("request", "SUCCESS", 200)
    assert told["result"] == body
    (line,) = hooked.said("inference")
    assert (line["id"], line["status"], line["answer_bytes"]) == (
        "r-1",
        "SUCCESS",
        told["answer_bytes"],
    )
    assert "canary" not in said(hooked)
    await until(lambda: metric(hooked.url, HOOKS, hook="callback", outcome="done"))


async def test_a_stream_is_told_when_it_is_over_and_without_its_text(
    hooked: Service, receiver: StubGateway
) -> None:
    expected = b"".join(chunk(number) for number in range(5)) + b"data: [DONE]\n\n"
    async with (
        aiohttp.ClientSession(hooked.url) as session,
        session.post("/x", json={**GOOD, "do": "stream", "chunks": 5}) as answer,
    ):
        assert await answer.read() == expected
    await until(lambda: receiver.callbacks)
    (told,) = receiver.callbacks
    assert (told["kind"], told["status"], told["result"]) == ("stream", "SUCCESS", None)
    assert told["answer_bytes"] == len(expected)


async def test_a_stream_that_breaks_is_told_as_a_failure(
    hooked: Service, receiver: StubGateway
) -> None:
    async with (
        aiohttp.ClientSession(hooked.url) as session,
        session.post("/x", json={**GOOD, "do": "die"}) as answer,
    ):
        await answer.read()
    await until(lambda: receiver.callbacks)
    assert receiver.callbacks[0]["status"] == "FAILURE"


async def test_a_callback_that_hangs_or_fails_never_holds_an_answer(
    hooked: Service, receiver: StubGateway
) -> None:
    await receiver.stop()
    async with (
        aiohttp.ClientSession(hooked.url) as session,
        session.post("/x", json=GOOD) as answer,
    ):
        assert answer.status == 200
    await until(lambda: metric(hooked.url, HOOKS, hook="callback", outcome="failed"))
    assert hooked.said("a callback failed")[0]["tries"] == 3


async def test_tasks_run_the_same_hooks(redis_server: RedisServer, model: Model) -> None:
    tasks: Tasks = await tasks_on(redis_server, model)
    try:
        worker = await tasks.worker(HOOKS=hooks_for(tasks.gateway))
        told = tasks.gateway.callbacks

        tasks.gateway.callback_statuses = [503]
        plain = await tasks.send(GOOD)
        await until(lambda: len(told) == 2, 60)
        assert {it["task_id"] for it in told} == {plain}
        assert told[-1]["result"] == tasks.gateway.results[plain]["result"]
        assert told[-1]["authorization"] is None

        refused_id = await tasks.send({})
        await until(lambda: len(told) == 3)
        assert (told[-1]["task_id"], told[-1]["status_code"]) == (refused_id, 422)

        auth = {"kind": "basic", "username": "me", "password": "canary"}
        own = f"{tasks.gateway.url}/callback?own"
        owned = await tasks.send(GOOD, callback_url=own, callback_auth=auth)
        await until(lambda: len(told) == 4)
        assert told[-1]["task_id"] == owned
        expected = "Basic " + base64.b64encode(b"me:canary").decode()
        assert told[-1]["authorization"] == expected

        metadata = "http://169.254.169.254/latest/meta-data"
        inside = await tasks.send(GOOD, callback_url=metadata)
        assert (await tasks.result(inside))["status"] == "SUCCESS"
        await until(tasks.nothing_left)
        assert len(told) == 4
        assert await metric(worker.url, HOOKS, hook="callback", outcome="refused") == 1
        assert len(worker.said("inference")) == 4
        assert "canary" not in said(worker)
    finally:
        await tasks.close()


async def test_hooks_that_cant_be_read_stop_the_start_and_are_named() -> None:
    settings = {"ENDPOINT": "m", "MAX_CONCURRENCY": "1", "HOOKS": '{"pre": [{"kind": "billing"}]}'}
    service = await Service("services.forwarder", settings).start()
    assert await service.wait(60) != 0
    problems = service.said("settings are wrong")[0]["problems"]
    assert any(name.startswith("LLM_PLATFORM_HOOKS") for name in problems)
