import asyncio
import base64
import contextlib
import json
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from service_harness import until
from service_platform import KEYS, Answer, Platform

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERY = {"type": "streaming", "stream_path": "/stream", "max_concurrency": 50}


@pytest_asyncio.fixture(loop_scope="session")
async def tasks(platform: Platform) -> Platform:
    """The platform's endpoint, whose model has routes of its own."""
    name = f"{platform.endpoint}-t"
    await platform.add(name, {platform.forwarder.port: True}, **EVERY)
    platform.endpoint = name
    return platform


async def ask(
    platform: Platform, kind: str, body: Any, team: str = "red", name: str = ""
) -> Answer:
    query = {"model_endpoint_id": name or platform.endpoint}
    async with (
        platform.session(team) as session,
        session.post(f"/v1/{kind}-tasks", params=query, json=body) as answer,
    ):
        return Answer(answer.status, answer.headers, await answer.read())


async def sync(platform: Platform, args: Any, **fields: Any) -> Answer:
    return await ask(platform, "sync", {"args": args, **fields})


async def streaming(platform: Platform, args: Any, **fields: Any) -> Answer:
    return await ask(platform, "streaming", {"args": args, **fields})


def events(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.body.decode().split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def failure(answer: Answer) -> tuple[int, str]:
    document = json.loads(answer.body)
    assert answer.status == 200
    assert document["status"] == "FAILURE"
    assert document["result"] is None
    return document["status_code"], document["traceback"]


async def test_a_sync_tasks_answer_is_the_wire_contracts_byte_by_byte(tasks: Platform) -> None:
    answer = await sync(tasks, {"do": "echo", "y": 1, "ü": [1.5, None]})
    assert answer.status == 200
    text = '{"do": "echo", "y": 1, "\\u00fc": [1.5, null]}'
    assert (
        answer.body
        == json.dumps(
            {
                "status": "SUCCESS",
                "result": {"result": text},
                "traceback": None,
                "status_code": 200,
            },
            separators=(",", ":"),
        ).encode()
    )
    (request,) = tasks.model.requests
    assert request["path"] == "/predict"
    headers = {name.lower(): value for name, value in request["headers"]}
    assert headers[b"content-type"] == b"application/json"
    assert b"authorization" not in headers


async def test_a_streaming_tasks_event_is_the_wire_contracts_byte_by_byte(tasks: Platform) -> None:
    answer = await streaming(tasks, {"do": "events", "events": ['data: {"y": 1}\r\n\r\n']})
    assert answer.body == (
        b'data: {"status":"SUCCESS","result":{"result":{"y":1}},"traceback":null,'
        b'"status_code":200}\n\n'
    )
    assert tasks.model.requests[0]["path"] == "/stream"


async def test_an_engine_of_one_route_is_asked_for_a_stream(tasks: Platform) -> None:
    await streaming(tasks, {"do": "events", "events": [], "big": 123456789012345678901234567890})
    asked = json.loads(tasks.model.requests[0]["body"])
    assert asked["stream"] is True
    assert asked["big"] == 123456789012345678901234567890


async def test_an_engine_cannot_be_asked_for_a_stream_of_no_object(tasks: Platform) -> None:
    answer = await streaming(tasks, [1, 2])
    assert answer.status == 400
    assert "args" in json.loads(answer.body)["detail"]


async def test_arguments_reach_the_model_as_they_were_written(tasks: Platform) -> None:
    args = '{"do":  "echo",\n "big": 123456789012345678901234567890, "ü": 1e2}'
    query = {"model_endpoint_id": tasks.endpoint}
    async with tasks.session() as session:
        body = '{"args": %s, "callback_url": null, "unknown": 1}' % args  # noqa: UP031
        async with session.post("/v1/sync-tasks", params=query, data=body.encode()) as answer:
            assert answer.status == 200
    assert tasks.model.requests[0]["body"] == args.encode()


async def test_a_url_is_handed_to_the_model_which_alone_may_fetch_it(tasks: Platform) -> None:
    answer = await ask(tasks, "sync", {"url": "http://169.254.169.254/"})
    assert answer.status == 200
    assert json.loads(tasks.model.requests[0]["body"]) == {"url": "http://169.254.169.254/"}


async def test_basic_with_the_key_as_name_is_enough(tasks: Platform) -> None:
    query = {"model_endpoint_id": tasks.endpoint}
    key = base64.b64encode(f"{KEYS['red']}:".encode()).decode()
    async with aiohttp.ClientSession(tasks.gateway.url) as session:
        for route in ("sync", "streaming"):
            path = f"/v1/{route}-tasks"
            headers = {"authorization": f"Basic {key}"}
            body = {"args": {}}
            async with session.post(path, params=query, json=body, headers=headers) as answer:
                assert answer.status == 200
            async with session.post(path, params=query, json=body) as answer:
                assert answer.status == 401
                assert list(await answer.json()) == ["detail"]


async def test_another_path_of_the_model_can_be_asked_but_none_of_the_worker(
    tasks: Platform,
) -> None:
    assert (await sync(tasks, {}, destination_path="/v2/other?a=1")).status == 200
    assert tasks.model.requests[0]["path"] == "/v2/other?a=1"
    paths = ["/drain", "/%64rain", "/drain?x=1", "//drain", "/metrics", "http://x/drain"]
    for path in [*paths, "/a b", "/a\r\nx: y", "/drain#x", "", "x"]:
        answer = await sync(tasks, {}, destination_path=path)
        if path:
            assert answer.status == 400, path
            assert "destination_path" in json.loads(answer.body)["detail"]
    assert await tasks.forwarder.is_ready()


async def test_failures_of_the_model_are_outcomes_and_its_400_the_clients(tasks: Platform) -> None:
    assert failure(await sync(tasks, {"do": "status", "status": 500}))[0] == 500
    assert failure(await sync(tasks, {"do": "die silently"}))[0] == 502
    assert len(tasks.model.requests) == 2
    (event,) = events(await streaming(tasks, {"do": "status", "status": 500}))
    assert (event["status"], event["status_code"]) == ("FAILURE", 500)
    for kind in ("sync", "streaming"):
        answer = await ask(tasks, kind, {"args": {"do": "status", "status": 400}})
        assert answer.status == 400
        assert "mine" in json.loads(answer.body)["detail"]


async def test_a_stream_that_breaks_ends_with_a_failure_and_none_with_done(
    tasks: Platform,
) -> None:
    whole = await streaming(tasks, {"do": "stream", "chunks": 3})
    assert [event["status"] for event in events(whole)] == ["SUCCESS"] * 3
    assert b"[DONE]" not in whole.body
    first, last = events(await streaming(tasks, {"do": "die", "first": 'data: {"y": 1}\n\n'}))
    assert first["result"] == {"result": {"y": 1}}
    assert (last["status"], last["result"], last["status_code"]) == ("FAILURE", None, 500)
    error = 'data: {"error": {"message": "out of memory", "code": 507}}\n\n'
    (told,) = events(await streaming(tasks, {"do": "events", "events": [error]}))
    assert (told["status"], told["status_code"]) == ("FAILURE", 507)
    assert told["traceback"] == "out of memory"
    plain = events(await streaming(tasks, {"do": "events", "events": ["data: word\n\n"]}))
    assert plain[0]["result"] == {"result": "word"}


async def test_what_is_not_ones_own_does_not_exist(tasks: Platform) -> None:
    shared = f"{tasks.endpoint}-all"
    await tasks.add(shared, {tasks.forwarder.port: True}, **EVERY, access="everyone")
    body = {"args": {}}
    for kind in ("sync", "streaming"):
        for name in (tasks.endpoint, "missing"):
            answer = await ask(tasks, kind, body, "blue", name)
            assert answer.status == 404
            assert list(json.loads(answer.body)) == ["detail"]
    assert (await ask(tasks, "sync", body, "blue", shared)).status == 200
    assert (await ask(tasks, "streaming", body, "blue", shared)).status == 404
    assert (await ask(tasks, "streaming", body, "admin", shared)).status == 200


async def test_each_type_is_asked_by_its_own_route(tasks: Platform) -> None:
    asynchronous, synchronous = f"{tasks.endpoint}-a", f"{tasks.endpoint}-s"
    ports = {tasks.forwarder.port: True}
    await tasks.add(synchronous, ports, **{**EVERY, "type": "sync"})
    tasks.add_record(asynchronous, **{**EVERY, "type": "async"})
    body = {"args": {}}
    assert (await ask(tasks, "sync", body, name=synchronous)).status == 200
    refused = {
        ("streaming", synchronous): "/v1/sync-tasks",
        ("sync", asynchronous): "/v1/async-tasks",
        ("streaming", asynchronous): "/v1/async-tasks",
    }
    for (kind, name), instead in refused.items():

        async def told(kind: str = kind, name: str = name) -> Answer | None:
            answer = await ask(tasks, kind, body, name=name)
            return answer if answer.status != 404 else None  # until the gateway knows it

        answer = await until(told)
        assert answer.status == 400
        assert instead in json.loads(answer.body)["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cloudpickle": "gASVBQAAAA=="}, "cloudpickle"),
        ({"args": {}, "return_pickled": True}, "return_pickled"),
        ({"args": {}, "callback_url": "http://x"}, "callback_url"),
        ({}, "args"),
        ({"args": {}, "timeout_seconds": 0}, "timeout_seconds"),
        ({"args": {}, "num_retries": -1}, "num_retries"),
        ({"args": {}, "timeout_seconds": "soon"}, "timeout_seconds"),
        ([], "object"),
    ],
)
async def test_what_a_task_cannot_be_is_said_by_its_name(
    tasks: Platform, body: Any, field: str
) -> None:
    for kind in ("sync", "streaming"):
        answer = await ask(tasks, kind, body)
        assert answer.status == 400
        assert field in json.loads(answer.body)["detail"]
    assert tasks.model.requests == []


async def test_a_task_without_an_endpoint_or_by_another_method_is_refused(tasks: Platform) -> None:
    async with tasks.session() as session:
        async with session.post("/v1/sync-tasks", json={"args": {}}) as answer:
            assert answer.status == 400
            assert "model_endpoint_id" in (await answer.json())["detail"]
        async with session.get("/v1/streaming-tasks") as answer:
            assert answer.status == 405
            assert list(await answer.json()) == ["detail"]


async def test_the_clients_own_limit_ends_a_task_and_its_generation(tasks: Platform) -> None:
    answer = await sync(tasks, {"do": "hang"}, timeout_seconds=1)
    assert answer.status == 408
    assert json.loads(answer.body) == {"detail": "Request timed out."}
    await until(lambda: tasks.model.aborted == 1)
    (event,) = events(await streaming(tasks, {"do": "hang"}, timeout_seconds=1))
    assert (event["status"], event["status_code"]) == ("FAILURE", 408)
    await until(lambda: tasks.model.aborted == 2)
    slow = await streaming(
        tasks, {"do": "stream", "chunks": 9999, "pause": 0.05}, timeout_seconds=1
    )
    *_, last = events(slow)
    assert (last["status"], last["status_code"]) == ("FAILURE", 408)
    await until(lambda: tasks.model.aborted == 3)


async def test_the_clients_limit_holds_while_it_waits_for_a_worker(tasks: Platform) -> None:
    await tasks.add(f"{tasks.endpoint}-c", {}, **EVERY, min_workers=0, hold_seconds=60)
    tasks.endpoint += "-c"
    assert (await sync(tasks, {}, timeout_seconds=0.5)).status == 408
    await tasks.held(0)


async def test_a_task_is_held_for_a_cold_endpoint(tasks: Platform) -> None:
    await tasks.add(f"{tasks.endpoint}-c", {}, **EVERY, min_workers=0, hold_seconds=60)
    tasks.endpoint += "-c"
    asked = [
        asyncio.create_task(ask(tasks, kind, {"args": {"do": "echo"}}))
        for kind in ("sync", "streaming")
    ]
    await tasks.held(2)
    tasks.set_workers(tasks.endpoint, {tasks.forwarder.port: True})
    whole, pieces = [await task for task in asked]
    assert json.loads(whole.body)["result"] == {"result": '{"do": "echo"}'}
    assert events(pieces)[0]["result"] == {"result": {"do": "echo", "stream": True}}


async def test_retries_are_patience_with_busy_workers(tasks: Platform) -> None:
    small = await tasks.new_forwarder(tasks.model, MAX_CONCURRENCY="1")
    name = f"{tasks.endpoint}-b"
    await tasks.add(name, {small.port: True}, **{**EVERY, "max_concurrency": 1})
    tasks.endpoint = name
    first = asyncio.create_task(sync(tasks, {"do": "hold"}))
    await until(lambda: tasks.model.open == 1)
    impatient = await sync(tasks, {}, num_retries=0)
    assert failure(impatient)[0] == 429
    assert int(impatient.headers["retry-after"]) >= 1
    (event,) = events(await streaming(tasks, {}, num_retries=0))
    assert event["status_code"] == 429
    patient = asyncio.create_task(sync(tasks, {"do": "echo"}))
    await tasks.held(1)
    tasks.model.release.set()
    assert json.loads((await patient).body)["status"] == "SUCCESS"
    assert (await first).status == 200


async def test_without_workers_a_task_fails_with_503_in_its_outcome(tasks: Platform) -> None:
    tasks.set_workers(tasks.endpoint, {})
    await tasks.routed(tasks.endpoint, [])
    answer = await sync(tasks, {}, num_retries=0)
    assert failure(answer)[0] == 503
    assert "retry-after" in answer.headers


@pytest.mark.parametrize("kind", ["sync", "streaming"])
@pytest.mark.parametrize("do", ["stream", "hang"])
async def test_a_disconnect_reaches_the_model(tasks: Platform, kind: str, do: str) -> None:
    body = {"args": {"do": do, "chunks": 1000, "pause": 0.05}}
    query = {"model_endpoint_id": tasks.endpoint}
    async with tasks.session() as session:
        asking = asyncio.create_task(session.post(f"/v1/{kind}-tasks", params=query, json=body))
        await until(lambda: tasks.model.open == 1)
        if (kind, do) == ("streaming", "stream"):
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
    await until(lambda: tasks.model.aborted == 1)
    await until(tasks.forwarder_idle)
    await until(tasks.gateway_idle)
