"""Reading a request's body within limits of size and time."""

import asyncio

from services.core.connection import Headers
from services.core.errors import BodyTooLarge
from services.core.exchange import Receive
from services.core.relay import header, read_body

from .errors import SlowBody, TooLarge

UPLOAD_SECONDS = 300.0
_DISCARD_SECONDS = 15.0
_DISCARD_FACTOR = 4


async def request_body(headers: Headers, receive: Receive, limit_bytes: int) -> bytes:
    """Read the whole body.

    Raises:
        TooLarge: it is longer than the limit.
        SlowBody: it didn't arrive in time.
        ClientGone: the client disconnected before its end.
    """
    announced = int(header(headers, b"content-length") or 0)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            if announced > limit_bytes:
                raise BodyTooLarge
            return await read_body(receive, limit_bytes)
    except BodyTooLarge:
        waits = (header(headers, b"expect") or b"").lower() == b"100-continue"
        if not waits and announced <= limit_bytes * _DISCARD_FACTOR:
            await _discard(receive, limit_bytes * _DISCARD_FACTOR)
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
