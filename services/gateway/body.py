"""Reading a request's body within limits of size, time, and what the process holds in all."""

import asyncio

from services.core.connection import Headers
from services.core.errors import BodyTooLarge
from services.core.exchange import Receive
from services.core.relay import header, read_body

from .errors import Overloaded, SlowBody, TooLarge

UPLOAD_SECONDS = 300.0
_DISCARD_SECONDS = 15.0
_DISCARD_FACTOR = 4


class BodyBudget:
    """How many bytes of bodies the process may hold, over all requests."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0

    def take(self, size: int) -> None:
        """Hold that much more.

        Raises:
            Overloaded: it would be too much.
        """
        if self._held + size > self._limit:
            raise Overloaded("The gateway holds as many request bodies as it can; try again soon.")
        self._held += size

    def give_back(self, size: int) -> None:
        """Hold that much less."""
        self._held -= size


class Body:
    """One request's body, held until no worker can need it any more."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._taken = 0
        self.data = b""

    def drop(self) -> None:
        """Let go of it; what is dropped already may be dropped again."""
        self._budget.give_back(self._taken)
        self._taken = 0
        self.data = b""

    def _take(self, size: int) -> None:
        self._budget.take(size)
        self._taken += size

    async def read(self, headers: Headers, receive: Receive, limit_bytes: int) -> None:
        """Read the whole body.

        Raises:
            TooLarge: it is longer than the limit.
            Overloaded: the process holds too much already.
            SlowBody: it didn't arrive in time.
            ClientGone: the client disconnected before its end.
        """
        announced = int(header(headers, b"content-length") or 0)
        waits = (header(headers, b"expect") or b"").lower() == b"100-continue"
        unread = limit_bytes * _DISCARD_FACTOR
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                if announced > limit_bytes:
                    raise BodyTooLarge
                self.data = await read_body(receive, limit_bytes, self._take)
        except (BodyTooLarge, Overloaded) as error:
            self.drop()
            if not waits and announced <= unread:
                await _discard(receive, unread)
            if isinstance(error, Overloaded):
                raise
            raise TooLarge(f"The body is larger than {limit_bytes} bytes.") from None
        except TimeoutError:
            raise SlowBody(f"The body didn't arrive within {UPLOAD_SECONDS:g} s.") from None


async def _discard(receive: Receive, limit_bytes: int) -> None:
    """Let a client that only writes finish: closing earlier would reset it before it reads why."""
    left = limit_bytes
    try:
        async with asyncio.timeout(_DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return
