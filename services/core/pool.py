"""Connections to upstreams, kept for reuse."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from .connection import Connection
from .errors import ConnectFailed

_LOOKS = 4
"""How often a limit is looked at before it counts as over."""


@asynccontextmanager
async def _patience(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError when something takes too long, but not when only this process does.

    One timer fires in the same turn of the loop in which what it waits for may be ready: a process
    that was held up for longer would find all its connections too late at once. So the loop has to
    turn several times, and each time gives what is ready its chance.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        def look(left: int) -> None:
            nonlocal timer
            if left == 0:
                limit.reschedule(loop.time())
            else:
                timer = loop.call_later(seconds / _LOOKS, look, left - 1)

        timer = loop.call_later(seconds / _LOOKS, look, _LOOKS - 1)
        try:
            yield
        finally:
            timer.cancel()


@dataclass(frozen=True)
class Address:
    """Where an upstream listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Pool:
    """Hands out connections, the one used last first.

    Args:
        connect_seconds: how long making a connection may take.
        idle_seconds: how long an unused connection is kept; it must be less than the server's own
            limit, so that no request is written to a connection that is just being closed. 0 makes
            a new connection for each request.
    """

    def __init__(self, *, connect_seconds: float, idle_seconds: float) -> None:
        self._connect_seconds = connect_seconds
        self._idle_seconds = idle_seconds
        self._idle: defaultdict[Address, list[Connection]] = defaultdict(list)
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def keeps_connections(self) -> bool:
        """Whether a request should ask the upstream to keep the connection."""
        return self._idle_seconds > 0

    async def acquire(self, address: Address) -> Connection:
        """Return a connection to ``address``.

        Raises:
            ConnectFailed: none could be made in time.
        """
        idle = self._idle.get(address)
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        while idle:
            connection = idle.pop()
            if connection.alive and connection.idle_since > oldest:
                return connection
            connection.close()
        return await self._connect(address)

    async def _connect(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with _patience(self._connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, lambda lost: self._forget(address, lost)),
                    address.host,
                    address.port,
                )
        except TimeoutError as error:
            message = f"no connection to {address} within {self._connect_seconds:g} s"
            raise ConnectFailed(message) from error
        except OSError as error:
            raise ConnectFailed(f"no connection to {address}: {error}") from error
        return connection

    def release(self, address: Address, connection: Connection) -> None:
        """Take a connection back after its request, however that ended."""
        if connection.release() and self.keeps_connections:
            self._idle[address].append(connection)
            self._schedule_sweep()
        else:
            connection.close()

    def drop(self, address: Address) -> None:
        """Close the idle connections to an upstream that takes no more requests."""
        for connection in self._idle.pop(address, []):
            connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for address in list(self._idle):
            self.drop(address)

    def _forget(self, address: Address, connection: Connection) -> None:
        idle = self._idle.get(address, [])
        if connection in idle:
            idle.remove(connection)

    def _schedule_sweep(self) -> None:
        if self._sweeper is None:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(self._idle_seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        for address, connections in list(self._idle.items()):
            for connection in [c for c in connections if c.idle_since <= oldest]:
                connections.remove(connection)
                connection.close()
            if not connections:
                del self._idle[address]
        if self._idle:
            self._schedule_sweep()
