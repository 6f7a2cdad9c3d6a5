"""Connections to workers: a slow one is given up, a slow gateway blames nobody."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest

from services.core.errors import ConnectFailed
from services.core.pool import Address, Pool

LIMIT_SECONDS = 0.2


@pytest.fixture
async def listening() -> AsyncIterator[Address]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])


@pytest.fixture
def pool() -> Pool:
    return Pool(connect_seconds=LIMIT_SECONDS, idle_seconds=0)


async def test_a_process_that_was_held_up_still_finds_its_connections_made(
    pool: Pool, listening: Address
) -> None:
    connecting = [asyncio.create_task(pool.acquire(listening)) for _ in range(50)]
    await asyncio.sleep(0)
    time.sleep(5 * LIMIT_SECONDS)  # noqa: ASYNC251 - the loop stands still, as on a busy machine
    for connection in await asyncio.gather(*connecting):
        assert connection.alive
        connection.close()


async def test_a_worker_that_takes_no_connection_is_given_up(pool: Pool) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = Address(*full.getsockname())
        waiting: list[socket.socket] = []
        try:
            # Once its queue is full, the server answers no more handshakes.
            for _ in range(8):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(full.getsockname())
                waiting.append(one)
            with pytest.raises(ConnectFailed, match=r"within 0\.2 s"):
                await pool.acquire(address)
        finally:
            for one in waiting:
                one.close()


async def test_a_worker_that_is_gone_is_said_to_refuse(pool: Pool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectFailed, match=r"(?i)refused|connect call failed"):
        await pool.acquire(Address("127.0.0.1", port))
