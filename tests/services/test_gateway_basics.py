import asyncio
import base64
import dataclasses
import json
import tracemalloc

import aiohttp
import pytest
from openai import AsyncOpenAI
from service_harness import Model, chunk, metric, served, until
from service_platform import KEYS, Platform, gateway_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

PREFIXES = ["/v1", "/openai/v1"]


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_the_openai_client_gets_a_whole_answer(platform: Platform, prefix: str) -> None:
    url = platform.gateway.url + prefix
    async with AsyncOpenAI(base_url=url, api_key=KEYS["red"]) as client:
        answer = await client.chat.completions.create(**platform.body())
    assert answer.choices[0].message.content == "42"
    assert platform.model.requests[-1]["path"] == "/v1/chat/completions"


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_the_openai_client_gets_a_stream(platform: Platform, prefix: str) -> None:
    url = platform.gateway.url + prefix
    async with AsyncOpenAI(base_url=url, api_key=KEYS["red"]) as client:
        stream = await client.chat.completions.create(**platform.body(), stream=True)
        words = [part.choices[0].delta.content async for part in stream]
    assert words == ["word0 ", "word1 ", "word2 "]


async def test_the_list_of_models_holds_what_the_key_may_call(platform: Platform) -> None:
    await platform.add(f"{platform.endpoint}-blue", {}, team="blue")
    await platform.add(f"{platform.endpoint}-all", {}, team="blue", access="everyone")
    async with AsyncOpenAI(base_url=f"{platform.gateway.url}/v1", api_key=KEYS["red"]) as client:
        names = {model.id async for model in client.models.list()}
        one = await client.models.retrieve(platform.endpoint)
    assert {platform.endpoint, f"{platform.endpoint}-all"} <= names
    assert f"{platform.endpoint}-blue" not in names
    assert (one.id, one.owned_by) == (platform.endpoint, "red")


async def test_unknown_fields_reach_the_model_unchanged(platform: Platform) -> None:
    text = json.dumps(
        platform.body(
            max_completion_tokens=7,
            stream_options={"include_usage": True},
            foo=1,
            tools=[{"type": "function", "function": {"parameters": {"properties": {"ü": {}}}}}],
        ),
        indent=3,
    )
    async with (
        platform.session() as session,
        session.post("/v1/chat/completions", data=text) as answer,
    ):
        assert answer.status == 200
    assert platform.model.requests[-1]["body"] == text.encode()


async def test_stream_false_and_odd_stream_values_are_passed_on(platform: Platform) -> None:
    for value in (False, None, "yes", 1):
        assert (await platform.post(stream=value, do="answer, whatever it says")).status == 200
        assert json.loads(platform.model.requests[-1]["body"])["stream"] == value


async def test_headers_pass_byte_by_byte(platform: Platform) -> None:
    body = json.dumps(platform.body()).encode()
    huge = b"y" * 60_000
    reader, writer = await asyncio.open_connection("127.0.0.1", platform.gateway.port)
    writer.write(
        b"POST /v1/chat/completions?a=%C3%BC&b=1 HTTP/1.1\r\nHost: x\r\n"
        b"Authorization: Bearer " + KEYS["red"].encode() + b"\r\nX-Latin: caf\xe9\r\n"
        b"X-Unicode: \xe6\x97\xa5\xe6\x9c\xac\r\nX-Huge: " + huge + b"\r\n"
        b"Connection: close, X-Mine\r\nX-Mine: 1\r\nX-LLM-Platform-Team: admin\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    assert b" 200 " in (await reader.read()).split(b"\r\n")[0]
    writer.close()
    seen = platform.model.requests[-1]
    headers = {name.lower(): value for name, value in seen["headers"]}
    assert headers[b"x-latin"] == b"caf\xe9"
    assert headers[b"x-unicode"] == b"\xe6\x97\xa5\xe6\x9c\xac"
    assert headers[b"x-huge"] == huge
    assert seen["path"] == "/v1/chat/completions?a=%C3%BC&b=1"
    assert not {b"x-mine", b"authorization", b"x-llm-platform-team"} & headers.keys()


async def test_the_request_id_goes_all_the_way_and_comes_back(platform: Platform) -> None:
    async with platform.session() as session:
        given = {"x-request-id": "mine-1"}
        async with session.post("/v1/completions", json=platform.body(), headers=given) as answer:
            assert answer.headers.getall("x-request-id") == ["mine-1"]
        async with session.post("/v1/completions", json=platform.body()) as answer:
            made = answer.headers["x-request-id"]
    seen = [dict(request["headers"])[b"x-request-id"] for request in platform.model.requests]
    assert seen == [b"mine-1", made.encode()]
    for request_id in ("mine-1", made):
        line = await platform.logged(request_id=request_id)
        assert (line["status"], line["team"]) == (200, "red")


async def test_a_hundred_streams_at_once_lose_no_byte(platform: Platform) -> None:
    forwarder = await platform.new_forwarder(platform.model, MAX_CONCURRENCY="200")
    platform.set_workers(platform.endpoint, {forwarder.port: True})
    expected = b"".join(chunk(number) for number in range(50)) + b"data: [DONE]\n\n"

    async def stream(session: aiohttp.ClientSession) -> bytes:
        body = platform.body(do="stream", chunks=50, pause=0.005)
        async with session.post("/v1/chat/completions", json=body) as answer:
            return await answer.read()

    async with platform.session() as session:
        answers = await asyncio.gather(*(stream(session) for _ in range(100)))
    assert answers == [expected] * 100
    assert await platform.gateway_idle()


async def test_a_large_body_goes_through_and_a_larger_one_is_refused(platform: Platform) -> None:
    text = "x" * (7 * 2**20)
    assert (await platform.post(text=text)).status == 200
    assert len(platform.model.requests[-1]["body"]) > len(text)
    refused = await platform.post(text="x" * (9 * 2**20))
    assert refused.status == 413
    assert refused.error["code"] == "request_too_large"


async def test_a_body_is_not_built_in_memory_to_be_looked_at() -> None:
    from services.gateway.call import read_call

    nested = b"[" + b"[]," * 300_000 + b"[]]"
    body = b'{"stream": true, "messages": ' + nested + b', "max_tokens": 7, "model": "m"}'
    tracemalloc.start()
    try:
        call = read_call(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (call.model, call.stream, call.max_tokens) == ("m", True, 7)
    assert peak < 100_000


async def test_bodies_over_the_budget_of_all_are_a_503_until_others_are_gone(
    platform: Platform,
) -> None:
    budget = {"MAX_HELD_BYTES": str(2**20)}
    gateway = gateway_of(
        platform.postgres, platform.database, platform.redis, platform.kube, platform.keys_dir,
        **budget,
    )  # fmt: skip
    small = dataclasses.replace(platform, gateway=await gateway.start())
    async with served(gateway):
        await gateway.ready()
        await small.routed(small.endpoint, [small.forwarder.port])
        text = "x" * 700_000
        held = asyncio.create_task(small.post(do="hold", text=text))
        await until(lambda: small.model.open == 1)
        refused = await small.post(text=text)
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.error["code"] == "gateway_busy"
        assert (await small.post(text="small")).status == 200
        small.model.release.set()
        assert (await held).status == 200
        # An answer that has begun needs its request's body no more.
        async with small.session() as session:
            body = small.body(do="stream", chunks=1000, pause=0.05, stream=True, text=text)
            async with session.post("/v1/chat/completions", json=body) as stream:
                await stream.content.readany()
                for _ in range(3):
                    assert (await small.post(text=text)).status == 200


@pytest.mark.parametrize(
    ("text", "param", "says"),
    [
        (b"{", None, "JSON"),
        (b"", None, "JSON"),
        (b"\xff\xfe{}", None, "JSON"),
        (b"[1]", None, "object"),
        (b'{"model": "m", "messages": "\xff"}', None, "JSON"),
        (b'{"model": "m", "messages": [}', None, "JSON"),
        (b'{"model": "m", "x": ' + b"[" * 200_000, None, "deep"),
        (b'{"model": {"a": 1}}', "model", "must be a string, not dict"),
        (b'{"model": 7.5}', "model", "must be a string, not float"),
        (b'{"model": true}', "model", "must be a string, not bool"),
        (b"[" * 200_000, None, "JSON|deep"),
        (b"{}", "model", "must give a model"),
        (b'{"model": null}', "model", "must give a model"),
        (b'{"model": 7}', "model", "must be a string"),
        (b'{"model": ["m"]}', "model", "must be a string"),
    ],
)
async def test_a_wrong_body_is_a_400_that_says_why(
    shared: Platform, text: bytes, param: str | None, says: str
) -> None:
    async with (
        shared.session() as session,
        session.post("/v1/chat/completions", data=text) as answer,
    ):
        error = (await answer.json())["error"]
        assert answer.status == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert any(word in error["message"] for word in says.split("|"))


async def test_an_answer_that_cant_end_in_time_is_refused_at_once(platform: Platform) -> None:
    name = f"{platform.endpoint}-quick"
    await platform.add(name, {platform.forwarder.port: True}, request_timeout_seconds=2)
    refused = await platform.post(model=name, max_tokens=100_000)
    assert refused.status == 400
    assert "use streaming" in refused.error["message"]
    assert refused.error["param"] == "max_tokens"
    assert (await platform.post(model=name, max_tokens=100_000, stream=True)).status == 200


async def test_wrong_routes_and_methods_have_openais_error_shape(shared: Platform) -> None:
    async with shared.session() as session:
        async with session.get("/v1/nothing") as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]["code"] == "unknown_url"
        async with session.get("/v1/chat/completions") as answer:
            assert answer.status in {404, 405}
            assert "message" in (await answer.json())["error"]


@pytest.mark.parametrize("model", ["nothing-of-that-name", "\u0000", "x" * 5000, "ü/../m"])
async def test_an_unknown_model_is_a_404(shared: Platform, model: str) -> None:
    answer = await shared.post(model=model)
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"
    assert answer.error["param"] == "model"


async def test_another_teams_endpoint_is_a_404_like_one_that_doesnt_exist(
    platform: Platform,
) -> None:
    theirs = await platform.post(team="blue")
    missing = await platform.post(team="blue", model="n" * len(platform.endpoint))
    assert theirs.status == missing.status == 404
    assert theirs.error["code"] == missing.error["code"] == "model_not_found"
    assert (await platform.post(team="admin")).status == 200
    assert len(platform.model.requests) == 1


async def test_every_valid_key_may_call_an_endpoint_for_everyone(platform: Platform) -> None:
    name = f"{platform.endpoint}-all"
    await platform.add(name, {platform.forwarder.port: True}, access="everyone")
    assert (await platform.post(model=name, team="blue")).status == 200


@pytest.mark.parametrize(
    "value",
    [
        None,
        "Bearer wrong",
        "Bearer ",
        "Bearer",
        "Basic !!!",
        "Digest x",
        "Bearer \u00e9",
        f"Bearer {KEYS['red']}x",
    ],
)
async def test_a_wrong_key_is_a_401(shared: Platform, value: str | None) -> None:
    headers = {} if value is None else {"authorization": value}
    async with aiohttp.ClientSession(shared.gateway.url) as session:
        for path in ("/v1/chat/completions", "/v1/models"):
            method = "GET" if path.endswith("models") else "POST"
            async with session.request(
                method, path, headers=headers, json={"model": "m"}
            ) as answer:
                assert answer.status == 401
                assert "www-authenticate" in answer.headers
                assert (await answer.json())["error"]["code"] == "invalid_api_key"


async def test_the_key_may_come_as_basic_user_name(platform: Platform) -> None:
    value = base64.b64encode(f"{KEYS['red']}:".encode()).decode()
    async with aiohttp.ClientSession(platform.gateway.url) as session:
        headers = {"authorization": f"Basic {value}"}
        async with session.post("/v1/completions", json=platform.body(), headers=headers) as answer:
            assert answer.status == 200


async def test_embeddings_are_routed_too(platform: Platform) -> None:
    for prefix in PREFIXES:
        assert (await platform.post(f"{prefix}/embeddings")).status == 200
        assert platform.model.requests[-1]["path"] == "/v1/embeddings"


async def test_a_models_own_error_comes_back_untouched(platform: Platform) -> None:
    for status in (400, 422, 429, 500, 503):
        answer = await platform.post(do="status", status=status)
        assert answer.status == status
        assert answer.error == {"message": "mine"}
    assert len(platform.model.requests) == 5


async def test_metrics_tell_requests_by_endpoint_and_code(platform: Platform) -> None:
    await platform.post()
    await platform.post(do="status", status=500)
    for code in ("200", "500"):
        count = await metric(
            platform.gateway.url,
            "llm_platform_gateway_requests_total",
            endpoint=platform.endpoint,
            code=code,
        )
        assert count == 1


async def test_logs_hold_neither_prompts_nor_answers_nor_keys(platform: Platform) -> None:
    secret = "canary-prompt-5d1f"
    messages = [{"role": "user", "content": secret}]
    assert (await platform.post(messages=messages, do="echo")).body.count(secret.encode()) == 1
    await platform.post(messages=messages, do="die silently")
    for log in (platform.gateway.raw, platform.forwarder.raw):
        assert '"event": "request"' in log
        assert secret not in log
        assert not any(key in log for key in KEYS.values())


async def test_requests_go_to_the_worker_with_the_fewest_open_ones(
    platform: Platform, other: Model
) -> None:
    second = await platform.new_forwarder(other)
    workers = {platform.forwarder.port: True, second.port: True}
    platform.set_workers(platform.endpoint, workers)
    await platform.routed(platform.endpoint, list(workers))
    held = [asyncio.create_task(platform.post(do="hold")) for _ in range(6)]
    await until(lambda: platform.model.open + other.open == 6)
    assert platform.model.open == other.open == 3
    platform.model.release.set()
    other.release.set()
    assert {(await task).status for task in held} == {200}
