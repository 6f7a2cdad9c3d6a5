"""One request on its way through us: its time budgets, and who may end it."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from .connection import Connection
from .errors import ClientGone, Ended, OutOfTime

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True)
class Budgets:
    """How long an exchange may take, in seconds."""

    first_byte_seconds: float
    """From sending the request to the first byte of the answer."""
    idle_seconds: float
    """Between two pieces of the answer."""
    total_seconds: float
    """From the request's arrival to the answer's end, without its pauses."""
    wall_seconds: float = math.inf
    """The same with its pauses, when whoever asked set a limit."""


class Exchange:
    """Ends the upstream's connection when there is a reason to, whoever knows it first.

    A disconnect, a used-up budget and a vanished worker all come here; the code that moves the
    bytes gets the reason as an exception from the connection it waits on.
    """

    def __init__(self, budgets: Budgets) -> None:
        self._loop = asyncio.get_running_loop()
        self._budgets = budgets
        self._connection: Connection | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done = False
        self._turn: asyncio.Future[None] | None = None
        self._paused_seconds = 0.0
        self.reason: Ended | None = None
        self.started = self._loop.time()
        self._heard = self.started
        self._waiting = False
        self._silence_seconds = budgets.first_byte_seconds
        self._silence_name = "no answer began"

    def allow(self, budgets: Budgets) -> None:
        """Set the budgets, once it is known what the request is for."""
        self._budgets = budgets
        self._silence_seconds = budgets.first_byte_seconds

    def watch_client(self, receive: Receive) -> None:
        """From now on nothing but a disconnect is expected from the client."""
        self._watcher = self._loop.create_task(self._until_disconnect(receive))

    async def _until_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end(ClientGone("the client disconnected"))

    def carry(self, connection: Connection) -> None:
        """Bind to the connection that the request goes out on.

        Raises:
            Ended: there was a reason to end already.
        """
        if self.reason is not None:
            raise self.reason
        self._connection = connection
        self._heard = self._loop.time()
        if self._timer is None:
            self._arm()

    async def pause(self, turn: asyncio.Future[None], limit_seconds: float) -> bool:
        """Wait for a turn, while no upstream has the request; return whether it came in time.

        Only the wall budget runs on meanwhile.

        Raises:
            Ended: there is a reason to end.
        """
        if self.reason is not None:
            raise self.reason
        self._disarm()
        began = self._loop.time()
        left = self.started + self._budgets.wall_seconds - began
        self._turn = turn
        try:
            await asyncio.wait({turn}, timeout=max(0.0, min(limit_seconds, left)))
        finally:
            self._turn = None
            self._paused_seconds += self._loop.time() - began
        if turn.done():
            turn.result()
            return True
        if left <= limit_seconds:
            self.end(self._too_long(self._budgets.wall_seconds))
        if self.reason is not None:
            raise self.reason
        return False

    def let_go(self) -> None:
        """Unbind: this connection's part is over, another may follow."""
        self._connection = None

    def end(self, reason: Ended) -> None:
        """End the exchange; the first reason counts."""
        if self._done or self.reason is not None:
            return
        self.reason = reason
        if self._connection is not None:
            self._connection.end(reason)
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(reason)

    def close(self) -> None:
        """Say that the exchange is over, so that nothing ends it any more."""
        self._done = True
        self._connection = None
        self._disarm()

    async def head(self, connection: Connection) -> None:
        """Wait for the answer's head, within the budget for the first byte."""
        self._waiting = True
        try:
            await connection.head()
        finally:
            self._waiting = False
        self._heard = self._loop.time()

    async def read(self, connection: Connection) -> bytes:
        """Read the next piece of the answer, within the budget for silence."""
        self._waiting = True
        try:
            piece = await connection.read()
        finally:
            self._waiting = False
        self._heard = self._loop.time()
        self._silence_seconds = self._budgets.idle_seconds
        self._silence_name = "the answer stopped"
        return piece

    def elapsed(self) -> float:
        """Seconds since the request arrived."""
        return self._loop.time() - self.started

    def _arm(self) -> None:
        silence = self._heard + min(self._silence_seconds, self._budgets.idle_seconds)
        self._timer = self._loop.call_at(min(*self._limits(), silence), self._check)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limits(self) -> tuple[float, float]:
        """Return the moments at which the total and the wall budget are used up."""
        total = self.started + self._paused_seconds + self._budgets.total_seconds
        return total, self.started + self._budgets.wall_seconds

    def _check(self) -> None:
        now = self._loop.time()
        if not self._waiting:  # the client is the slow one, which isn't the upstream's silence
            self._heard = now
        total, wall = self._limits()
        if now >= wall:
            self.end(self._too_long(self._budgets.wall_seconds))
        elif now >= total:
            self.end(self._too_long(self._budgets.total_seconds))
        elif now >= self._heard + self._silence_seconds:
            self.end(OutOfTime(f"{self._silence_name} for {self._silence_seconds:g} s"))
        else:
            self._arm()

    def _too_long(self, seconds: float) -> OutOfTime:
        return OutOfTime(f"the request took longer than its limit of {seconds:g} s")
