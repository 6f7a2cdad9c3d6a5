import asyncio
import json
import signal

import aiohttp
import pytest
from service_harness import Model, Service, chunk, metric, served, until
from service_platform import forwarder_of
from yarl import URL

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ready_forwarder(model: Model, **env: str) -> Service:
    return await (await forwarder_of(model, **env).start()).ready()


async def idle(forwarder: Service) -> bool:
    return await metric(forwarder.url, "llm_platform_forwarder_in_flight", endpoint="m") == 0


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
async def test_any_method_and_path_pass_untouched(
    forwarder: Service, model: Model, method: str
) -> None:
    path = "/a%2Fb/../c;d?q=%20&r"
    async with aiohttp.ClientSession() as session:
        url = URL(forwarder.url + path, encoded=True)
        async with session.request(method, url, data=b"\x00\xffbytes") as answer:
            assert answer.status == 200
    seen = model.requests[-1]
    assert (seen["method"], seen["path"], seen["body"]) == (method, path, b"\x00\xffbytes")


async def test_a_chunked_body_of_unknown_length_is_streamed(
    forwarder: Service, model: Model
) -> None:
    async def parts():
        for number in range(200):
            yield bytes([number]) * 5000

    expected = b"".join([part async for part in parts()])
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{forwarder.url}/x", data=parts()) as answer,
    ):
        assert answer.status == 200
    assert model.requests[-1]["body"] == expected


async def test_readiness_follows_the_models_health(model: Model) -> None:
    forwarder = await ready_forwarder(model)
    async with served(forwarder):
        model.healthy = False
        await until(lambda: _not_ready(forwarder))
        model.healthy = True
        await until(forwarder.is_ready)


async def _not_ready(forwarder: Service) -> bool:
    return not await forwarder.is_ready()


async def test_the_limit_is_a_429_and_frees_on_disconnect(model: Model) -> None:
    forwarder = await ready_forwarder(model, MAX_CONCURRENCY="2")
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        held = [asyncio.create_task(session.post("/x", json={"do": "hang"})) for _ in range(2)]
        await until(lambda: model.open == 2)
        async with session.post("/x", json={}) as answer:
            assert answer.status == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["x-llm-platform-refused"] == "full"
            assert (await answer.json())["error"]["type"] == "rate_limit_error"
        assert await metric(forwarder.url, "llm_platform_forwarder_limit") == 2
        assert await metric(forwarder.url, "llm_platform_forwarder_in_flight") == 2
        held[0].cancel()
        await until(lambda: model.aborted == 1)
        async with session.post("/x", json={}) as answer:
            assert answer.status == 200
        model.release.set()
        (await held[1]).close()
        await until(lambda: idle(forwarder))


async def test_a_request_over_its_time_is_a_504_and_closes_the_upstream(model: Model) -> None:
    forwarder = await ready_forwarder(model, REQUEST_TIMEOUT_SECONDS="0.5")
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        async with session.post("/x", json={"do": "hang"}) as answer:
            assert answer.status == 504
        await until(lambda: model.aborted == 1)


async def test_a_model_that_dies_is_a_502_or_an_error_event(forwarder: Service) -> None:
    async with aiohttp.ClientSession(forwarder.url) as session:
        async with session.post("/x", json={"do": "die silently"}) as answer:
            assert answer.status == 502
            assert "x-llm-platform-refused" not in answer.headers
            assert (await answer.json())["error"]["code"] == "model_failed"
        async with session.post("/x", json={"do": "die"}) as answer:
            error = (await answer.text()).split("data: ")[-1]
            assert json.loads(error)["error"]["code"] == "model_failed"


async def test_an_unreachable_model_is_refused_so_that_another_worker_may_be_tried(
    model: Model,
) -> None:
    forwarder = await ready_forwarder(model)
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        await model.stop()
        async with session.post("/x", json={}) as answer:
            assert answer.status == 503
            assert answer.headers["x-llm-platform-refused"] == "unreachable"


async def test_sigterm_waits_for_the_open_stream_and_refuses_new_requests(model: Model) -> None:
    forwarder = await ready_forwarder(model)
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        body = {"do": "stream", "chunks": 40, "pause": 0.05}
        async with session.post("/x", json=body) as stream:
            await stream.content.readany()
            forwarder.signal(signal.SIGTERM)
            await until(lambda: _not_ready(forwarder))
            await until(lambda: _refused(session))
            rest = await stream.read()
        assert rest.endswith(chunk(39) + b"data: [DONE]\n\n")
        assert await forwarder.wait() == 0


async def _refused(session: aiohttp.ClientSession) -> bool:
    async with session.post("/x", json={}) as answer:
        assert answer.status in {200, 503}
        return answer.status == 503 and answer.headers["x-llm-platform-refused"] == "draining"


async def test_requests_are_still_taken_right_after_sigterm(model: Model) -> None:
    forwarder = await ready_forwarder(model, LINGER_SECONDS="3")
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        forwarder.signal(signal.SIGTERM)
        await until(lambda: forwarder.said("draining"))
        async with session.post("/x", json={}) as answer:
            assert answer.status == 200
            assert answer.headers["connection"] == "close"


async def test_the_drain_hook_answers_only_when_the_last_request_is_done(model: Model) -> None:
    forwarder = await ready_forwarder(model)
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        held = asyncio.create_task(session.post("/x", json={"do": "hold"}))
        await until(lambda: model.open == 1)
        hook = asyncio.create_task(session.get("/drain"))
        await until(lambda: _not_ready(forwarder))
        await until(lambda: _refused(session))
        assert not hook.done()
        forwarder.signal(signal.SIGTERM)
        await until(lambda: forwarder.said("draining"))
        assert not hook.done()
        model.release.set()
        answer = await held
        assert answer.status == 200
        answer.close()
        assert (await hook).status == 200
        assert await forwarder.wait() == 0


async def test_open_requests_are_cut_at_the_limit_of_the_drain(model: Model) -> None:
    forwarder = await ready_forwarder(model, DRAIN_SECONDS="0.5")
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        held = asyncio.create_task(session.post("/x", json={"do": "hang"}))
        await until(lambda: model.open == 1)
        forwarder.signal(signal.SIGTERM)
        assert await forwarder.wait() == 0
        with pytest.raises(aiohttp.ClientError):
            (await held).raise_for_status()
        await until(lambda: model.aborted == 1)


async def test_metrics_count_codes_and_durations(model: Model) -> None:
    forwarder = await ready_forwarder(model)
    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        for status in (200, 500):
            async with session.post("/x", json={"do": "status", "status": status}):
                pass
        prefix = "llm_platform_forwarder"
        for code in ("200", "500"):
            assert await metric(forwarder.url, f"{prefix}_requests_total", code=code) == 1
        assert await metric(forwarder.url, f"{prefix}_request_seconds_count") == 2
        assert await metric(forwarder.url, f"{prefix}_first_byte_seconds_count") == 2


async def _alive(forwarder: Service) -> int:
    async with aiohttp.ClientSession(forwarder.url) as session, session.get("/livez/model") as it:
        return it.status


async def test_a_model_that_fails_for_long_is_to_be_restarted(model: Model) -> None:
    forwarder = await ready_forwarder(model, MODEL_DEAD_SECONDS="0.5")

    async def status_is(status: int) -> bool:
        return await _alive(forwarder) == status

    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        assert await _alive(forwarder) == 200
        model.healthy = False
        await until(lambda: status_is(503))
        # Bytes of an answer are a sign of life, whatever the health route says.
        body = {"do": "stream", "chunks": 60, "pause": 0.05}
        async with session.post("/x", json=body) as stream:
            await stream.content.readany()
            await until(lambda: status_is(200))
            await stream.read()
        await until(lambda: status_is(503))
        model.healthy = True
        await until(lambda: status_is(200))


async def test_a_model_that_never_was_healthy_has_all_its_time(model: Model) -> None:
    model.healthy = False
    forwarder = await forwarder_of(model, MODEL_DEAD_SECONDS="0.1").start()
    async with served(forwarder):
        await forwarder.listening()
        for _ in range(20):
            assert await _alive(forwarder) == 200
            await asyncio.sleep(0.05)


async def test_a_restarted_model_has_all_its_time_again(model: Model) -> None:
    forwarder = await ready_forwarder(model, MODEL_DEAD_SECONDS="0.3")

    async def dead() -> bool:
        return await _alive(forwarder) == 503

    async with served(forwarder), aiohttp.ClientSession(forwarder.url) as session:
        model.healthy = False
        await until(dead)
        async with session.get("/drain") as hook:
            assert hook.status == 200
        for _ in range(20):
            assert await _alive(forwarder) == 200
            await asyncio.sleep(0.05)


async def test_wrong_settings_are_told_by_name_and_without_their_values() -> None:
    env = {"ENDPOINT": "m", "MAX_CONCURRENCY": "0", "UPSTREAM": "ftp://canary-value"}
    forwarder = await Service("services.forwarder", env).start()
    assert await forwarder.wait() != 0
    (line,) = forwarder.said("settings are wrong")
    assert line["problems"].keys() == {"LLM_PLATFORM_MAX_CONCURRENCY", "LLM_PLATFORM_UPSTREAM"}
    gateway = await Service("services.gateway", {"REDIS_URL": "redis://:canary@x"}).start()
    assert await gateway.wait() != 0
    assert gateway.said("settings are wrong")[0]["problems"].keys() == {"LLM_PLATFORM_DATABASE_URL"}
    assert "canary" not in gateway.raw
