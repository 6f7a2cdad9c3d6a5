"""One HTTP/1.1 connection to an upstream, byte-exact, that can be broken off at any moment.

A client library hides what a proxy must know: whether anything of a request was sent, which bytes
came, and when the peer went away. So this speaks HTTP/1.1 itself, with the parser of the server.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from .errors import UpstreamBroke
from .sockets import harden

Headers = list[tuple[bytes, bytes]]

_HIGH_WATER_BYTES = 256 * 1024
_NO_BODY = frozenset({204, 304})


class Connection(asyncio.Protocol):
    """A connection carries one request at a time; the pool hands it out and takes it back."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_idle_lost: Callable[["Connection"], None]
    ):
        self._loop = loop
        self._on_idle_lost = on_idle_lost
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._drain: asyncio.Future[None] | None = None
        self._can_write = True
        self._error: BaseException | None = None
        self._busy = False
        self.idle_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.headers: Headers = []
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._reading_paused = False
        self._head_done = False
        self._complete = False
        self._head_only = False
        self._ends_at_close = True
        self._reusable = False
        self._surplus = False

    # --- what the proxy calls ---------------------------------------------------------------

    def start(self, head: bytes, *, head_only: bool) -> None:
        """Send a request's head (and its body, when that is appended)."""
        self._reset()
        self._busy = True
        self._head_only = head_only
        self._write(head)

    async def write(self, data: bytes) -> None:
        """Send more of the body, waiting while the upstream doesn't take it."""
        self._write(data)
        while not self._can_write and self._error is None and not self._complete:
            self._drain = self._loop.create_future()
            await self._drain

    def _write(self, data: bytes) -> None:
        if self._error is None and self._transport is not None:
            self._transport.write(data)

    async def head(self) -> None:
        """Wait for status and headers.

        Raises:
            UpstreamError: the connection broke first, or ``end`` was called.
        """
        while not self._head_done:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self) -> bytes:
        """Return what has arrived of the body, or ``b""`` at its end.

        Raises:
            UpstreamError: the body broke off, or ``end`` was called.
        """
        while not self._chunks:
            if self._complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    @property
    def finished(self) -> bool:
        """Whether the whole answer has arrived and been read."""
        return self._complete and not self._chunks

    def end(self, reason: BaseException) -> None:
        """Break off now: whoever waits gets ``reason``, the peer sees the connection close."""
        if self._error is None:
            self._error = reason
        self._chunks.clear()
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def release(self) -> bool:
        """Say that the request is over; return whether the connection may carry another one."""
        self._busy = False
        usable = self._complete and self._reusable and not self._surplus and self._error is None
        if usable:
            self.idle_since = self._loop.time()
        elif self._transport is not None:
            self._transport.abort()
        return usable

    @property
    def alive(self) -> bool:
        """Whether the peer hasn't closed it."""
        return self._error is None and self._transport is not None

    def close(self) -> None:
        """Close an idle connection."""
        if self._transport is not None:
            self._transport.close()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        for future in (self._waiter, self._drain):
            if future is not None and not future.done():
                future.set_result(None)

    # --- what the event loop calls ----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, from the event loop."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's isn't a subclass
        harden(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Take bytes of the answer."""
        if not self._busy:  # nobody asked: whatever this is, it isn't an answer
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self.end(UpstreamBroke(f"the upstream doesn't speak HTTP/1.1: {error}"))
            else:
                self._surplus = True
        if self._buffered > _HIGH_WATER_BYTES and not self._reading_paused:
            self._reading_paused = True
            assert self._transport is not None  # noqa: S101
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Close when the peer does."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._transport = None
        if self._busy and self._head_done and self._ends_at_close and exc is None:
            self._complete = True
        if self._error is None:
            self._error = UpstreamBroke("the upstream closed the connection in mid-answer")
        if not self._busy:
            self._on_idle_lost(self)
        self._can_write = True
        self._wake()

    def pause_writing(self) -> None:
        """Hold the request's body."""
        self._can_write = False

    def resume_writing(self) -> None:
        """Go on with the request's body."""
        self._can_write = True
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)

    # --- what the parser calls --------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Notice an answer that nobody asked for."""
        if self._complete:  # a second answer to one request: not a peer to talk to again
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if not self._complete:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take the end of the head."""
        if self._complete:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:  # informational: the real answer follows
            return
        self._head_done = True
        framed = {name.lower() for name, _ in self.headers}
        self._ends_at_close = not framed & {b"content-length", b"transfer-encoding"}
        if self._head_only or self.status in _NO_BODY:
            self._ends_at_close = False
            # The parser would wait for the body that a HEAD's Content-Length announces.
            self._complete = self._head_only

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        if not self._complete:
            self._chunks.append(body)
            self._buffered += len(body)

    def on_message_complete(self) -> None:
        """Take the end of the answer."""
        if self._complete:
            return
        if self.status < 200:
            self.headers = []
            return
        self._reusable = self._parser.should_keep_alive() and not self._head_only
        self._complete = True
