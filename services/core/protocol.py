"""The server's side of HTTP/1.1, with limits to what a client may make us keep of its heads."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from . import openai

HEAD_BYTES = 64 * 1024
"""The longest head of a request, trailers counted in."""

_READ_ANSWER_SECONDS = 5


class _HeadTooLong(Exception):  # noqa: N818
    """Stops the parser."""


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which by itself limits neither a head's size nor its time.

    A head that is too long is answered with 431, one that takes too long ends the connection.
    """

    head_seconds: float = 30

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_head = True
        self._head_bytes = 0
        self._unparsed_bytes = 0
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    # --- what the event loop calls ----------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the first head."""
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, as long as they lead to something."""
        if self._refused:
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        # The parser holds what isn't a whole header, chunk or trailer yet, and tells nobody.
        if self._unparsed_bytes > HEAD_BYTES:
            self._refuse()
        elif self._in_head and self._unparsed_bytes:
            self._arm()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refused, which may have been our own doing."""
        if self._head_bytes > HEAD_BYTES:
            self._refuse()
        else:
            self._disarm()
            super().send_400_response(msg)

    # --- what the parser calls --------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin with a head."""
        self._in_head = True
        self._head_bytes = 0
        self._unparsed_bytes = max(1, self._unparsed_bytes)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is counted and dropped, since nobody here asked for any."""
        self._count(len(name) + len(value))
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head."""
        self._in_head = False
        self._unparsed_bytes = 0
        self._disarm()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, whose length is the application's matter."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next head, for as long as the server keeps connections."""
        self._in_head = True
        self._unparsed_bytes = 0
        super().on_message_complete()

    # --- limits -----------------------------------------------------------------------------

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise _HeadTooLong

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._head_late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_late(self) -> None:
        self._timer = None
        if self._answering:  # its client may take that answer's time
            self._arm()
        else:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._disarm()
        if self._answering and (self._in_head or self.cycle.response_started):
            self.transport.abort()  # an answer of ours would be taken for another request's
            return
        body = openai.error_body(431, f"The request's headers are longer than {HEAD_BYTES} bytes.")
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body)
        )
        # Closing with bytes unread would reset the connection before the client reads why.
        self.transport.write_eof()
        self.loop.call_later(_READ_ANSWER_SECONDS, self.transport.close)


def bounded(head_seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol with a limit in seconds for a head's arrival."""
    return type("BoundedProtocol", (BoundedProtocol,), {"head_seconds": head_seconds})
