"""How a request goes out and its answer comes back: byte-exact, without hop-by-hop headers."""

from collections.abc import Callable, Iterable

from . import openai
from .connection import Connection, Headers
from .errors import BodyTooLarge, ClientGone, UpstreamBroke, UpstreamError
from .exchange import Exchange, Receive, Send

REFUSED = b"x-llm-platform-refused"
"""A forwarder sets it when the request didn't reach the engine, so that another may be tried."""

REQUEST_ID = b"x-request-id"

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OF_THE_REQUEST = _HOP_BY_HOP | {b"host", b"expect"}


def end_to_end(headers: Iterable[tuple[bytes, bytes]], hop_by_hop: frozenset[bytes]) -> Headers:
    """Return the headers that are meant for the other end, as they came."""
    kept: Headers = []
    named: set[bytes] = set()
    for name, value in headers:
        lower = name.lower()
        if lower == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
        elif lower not in hop_by_hop:
            kept.append((name, value))
    if named - {b"keep-alive", b"close"}:
        kept = [(name, value) for name, value in kept if name.lower() not in named]
    return kept


def request_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return a request's headers without those that belong to the client's own connection."""
    return end_to_end(headers, _OF_THE_REQUEST)


def request_head(
    method: bytes, target: bytes, host: bytes, headers: Headers, *, keep: bool
) -> bytes:
    """Write a request's head."""
    parts = [method, b" ", target, b" HTTP/1.1\r\nhost: ", host, b"\r\n"]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n" if keep else b"connection: close\r\n\r\n")
    return b"".join(parts)


def header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes | None:
    """Return the first value of a header (its name in lower case), or None."""
    for name, value in headers:
        if name.lower() == wanted:
            return value
    return None


async def read_body(receive: Receive, limit_bytes: int, take: Callable[[int], None]) -> bytes:
    """Read a whole request body; ``take`` is told of each piece before it is kept.

    Raises:
        BodyTooLarge: it is longer than ``limit_bytes``.
        ClientGone: the client disconnected before it was complete.
    """
    message = await receive()
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone("the client disconnected while it sent its request")
        part = message.get("body", b"")
        size += len(part)
        if size > limit_bytes:
            raise BodyTooLarge(f"the body is larger than {limit_bytes} bytes")
        take(len(part))
        if not message.get("more_body"):
            return b"".join([*parts, part]) if parts else part
        parts.append(part)
        message = await receive()


async def answer(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send a whole JSON answer of our own."""
    framing = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*framing, *headers]})
    await send({"type": "http.response.body", "body": body})


class Relay:
    """Passes one answer back to the client.

    Args:
        send: the client's side.
        exchange: the exchange that the answer belongs to.
        added: headers that replace the upstream's of the same name.
        error_body: makes the JSON error for an answer that breaks off in mid-stream.
        on_piece: told whenever a piece of the answer has come.
    """

    def __init__(
        self,
        send: Send,
        exchange: Exchange,
        added: Headers,
        error_body: Callable[[UpstreamError], bytes],
        on_piece: Callable[[], None] | None = None,
    ) -> None:
        self._send = send
        self._exchange = exchange
        self._added = added
        self._error_body = error_body
        self._on_piece = on_piece
        self.began = False
        self.status = 0
        self.first_byte_seconds: float | None = None
        self.sent_bytes = 0
        self.broken: UpstreamError | None = None

    async def run(self, connection: Connection) -> None:
        """Pass the answer on; an answer that breaks after it began is ended as well as it can be.

        Raises:
            UpstreamError: it broke before anything was sent, so that an error can be answered.
        """
        streamed = self._is_event_stream(connection.headers)
        # A plain answer's head waits for its body, so that a failure between them can be told.
        piece = b"" if streamed else await self._exchange.read(connection)
        await self._begin(connection)
        tail = b"\n\n"
        try:
            if streamed:
                piece = await self._exchange.read(connection)
            while piece:
                if connection.finished:
                    break
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                self._count(piece)
                tail = piece[-4:]
                piece = await self._exchange.read(connection)
        except UpstreamError as error:
            await self._broke(
                error, streamed=streamed, at_boundary=tail.endswith((b"\n\n", b"\r\n\r\n"))
            )
        else:
            self._count(piece)
            await self._send({"type": "http.response.body", "body": piece})

    def _is_event_stream(self, headers: Headers) -> bool:
        kind = header(headers, b"content-type") or b""
        return kind.startswith(b"text/event-stream") and header(headers, b"content-length") is None

    async def _begin(self, connection: Connection) -> None:
        if not 200 <= connection.status < 600:
            raise UpstreamBroke(f"the upstream answered with status {connection.status}")
        dropped = _HOP_BY_HOP | {REFUSED} | {name for name, _ in self._added}
        if connection.status == 304:
            dropped |= {b"content-length"}  # it speaks of the body that isn't sent
        headers = [*end_to_end(connection.headers, dropped), *self._added]
        self.began = True
        self.status = connection.status
        await self._send(
            {"type": "http.response.start", "status": connection.status, "headers": headers}
        )

    def _count(self, piece: bytes) -> None:
        if self.first_byte_seconds is None:
            self.first_byte_seconds = self._exchange.elapsed()
        self.sent_bytes += len(piece)
        if piece and self._on_piece is not None:
            self._on_piece()

    async def _broke(self, error: UpstreamError, *, streamed: bool, at_boundary: bool) -> None:
        self.broken = error
        if isinstance(error, ClientGone) or not streamed:
            return  # without its end the server cuts the connection, which tells the client
        frame = openai.error_event(self._error_body(error))
        # An event that was cut is closed first, else it would swallow the error.
        body = frame if at_boundary else b"\n\n" + frame
        await self._send({"type": "http.response.body", "body": body})
