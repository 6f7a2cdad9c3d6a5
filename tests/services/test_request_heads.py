"""What a client may make a server keep before its request is known, by the forwarder."""

import asyncio
import contextlib

import pytest
from service_harness import Model, Service, served
from service_platform import forwarder_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT = 64 * 1024
HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


async def answer_to(forwarder: Service, *parts: bytes) -> bytes:
    """Send the parts, and return all that comes until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    with contextlib.suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([HEAD, b"X-Endless: ", *[b"y" * 10_000] * 200], id="one endless header"),
        pytest.param([HEAD, *[b"X-Many: value\r\n" * 100] * 200], id="endless headers"),
        pytest.param([b"GET /", *[b"y" * 10_000] * 200], id="an endless target"),
        pytest.param([b"GET /" + b"y" * 10 * LIMIT], id="a target that comes at once"),
        pytest.param([HEAD + b"X-Long: " + b"y" * LIMIT + b"\r\n\r\n"], id="long, but whole"),
        pytest.param([CHUNKED + b"1;", *[b"y" * 10_000] * 200], id="an endless chunk extension"),
        pytest.param([CHUNKED + b"0\r\nX-T: ", *[b"y" * 10_000] * 200], id="an endless trailer"),
        pytest.param([CHUNKED + b"0\r\n", *[b"X-T: v\r\n" * 100] * 200], id="endless trailers"),
    ],
)
async def test_a_head_over_the_limit_is_a_431(forwarder: Service, parts: list[bytes]) -> None:
    answer = await answer_to(forwarder, *parts)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"invalid_request_error" in answer
    assert await forwarder.is_ready()


async def test_a_body_in_the_smallest_chunks_is_not_taken_for_a_head(
    forwarder: Service, model: Model
) -> None:
    chunks = [b"1\r\nx\r\n" * 5000] * 10
    end = b"0\r\nX-Trailer: v\r\n\r\n"
    head = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await answer_to(forwarder, head, *chunks, end)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert model.requests[-1]["body"] == b"x" * 50_000


async def test_an_answer_under_way_is_cut_by_a_next_head_over_the_limit(
    forwarder: Service, model: Model
) -> None:
    body = b'{"do": "stream", "chunks": 1000, "pause": 0.05}'
    first = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(first)
    answer = await reader.readuntil(b"word0")
    writer.write(HEAD + b"X-Endless: " + b"y" * 2 * LIMIT)
    with contextlib.suppress(ConnectionError):
        answer += await asyncio.wait_for(reader.read(), 20)
    writer.close()
    assert b" 431 " not in answer


@pytest.mark.parametrize("sent", [b"", HEAD, b"\r\n"])
async def test_a_head_that_never_ends_closes_the_connection(model: Model, sent: bytes) -> None:
    forwarder = await (await forwarder_of(model, HEAD_SECONDS="0.3").start()).ready()
    async with served(forwarder):
        await answer_to(forwarder, sent)


async def test_time_for_the_head_is_not_the_time_of_the_answer(model: Model) -> None:
    forwarder = await (await forwarder_of(model, HEAD_SECONDS="0.2").start()).ready()
    body = b'{"do": "stream", "chunks": 20, "pause": 0.05}'
    first = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with served(forwarder):
        answer = await answer_to(forwarder, first + b"GET /healthz HTT")
    assert b"word19" in answer
    assert answer.endswith(b"0\r\n\r\n")
