"""The way of a request through the worker: any method, any path, nothing changed."""

import structlog

from services.core import openai
from services.core.connection import Connection, Headers
from services.core.errors import ClientGone, ConnectFailed, OutOfTime, UpstreamError
from services.core.exchange import Budgets, Exchange, Receive, Scope, Send
from services.core.pool import Pool
from services.core.relay import (
    REFUSED,
    REQUEST_ID,
    Relay,
    answer,
    header,
    request_head,
    request_headers,
)
from services.core.server import Lifecycle

from .drain import Drain
from .errors import Draining, Full, Refused, Unreachable
from .health import ModelHealth
from .measures import Measures
from .settings import ForwarderSettings

_STATUS_CLIENT_GONE = 499
_LAST_CHUNK = b"0\r\n\r\n"


class Forward:
    """An ASGI application that passes every request to the model's server."""

    def __init__(
        self,
        *,
        settings: ForwarderSettings,
        pool: Pool,
        health: ModelHealth,
        drain: Drain,
        lifecycle: Lifecycle,
        measures: Measures,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._address = settings.address
        self._host = str(settings.address).encode()
        self._pool = pool
        self._health = health
        self._drain = drain
        self._lifecycle = lifecycle
        self._measures = measures
        self._log = log
        total = settings.request_timeout_seconds
        self._budgets = Budgets(total, total, total)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        request_id = header(scope["headers"], REQUEST_ID) or b""
        try:
            self._admit()
        except Refused as refusal:
            await self._refuse(send, refusal)
            return
        exchange = Exchange(self._budgets)
        relay = Relay(send, exchange, self._added(), _broken_body, self._health.heard)
        status, error = 0, ""
        self._lifecycle.enter()
        self._measures.in_flight.inc()
        try:
            status = await self._pass(scope, receive, relay, exchange)
            error = type(relay.broken).__name__ if relay.broken else ""
        except ClientGone:
            status, error = _STATUS_CLIENT_GONE, ClientGone.__name__
        except ConnectFailed as problem:
            error = ConnectFailed.__name__
            status = Unreachable.status
            await self._refuse(send, Unreachable(f"The model can't be reached: {problem}."))
        except UpstreamError as problem:
            error = type(problem).__name__
            status = 504 if isinstance(problem, OutOfTime) else 502
            await answer(send, status, _broken_body(problem))
        finally:
            exchange.close()
            self._lifecycle.leave()
            self._measures.in_flight.dec()
            seconds = exchange.elapsed()
            self._measures.request(status, seconds, relay.first_byte_seconds)
            self._log.info(
                "request",
                request_id=request_id.decode("latin-1"),
                method=scope["method"],
                path=scope["path"],
                status=status,
                seconds=round(seconds, 4),
                sent_bytes=relay.sent_bytes,
                error=error,
            )

    def _admit(self) -> None:
        if self._drain.refusing:
            raise Draining("The worker is ending.")
        if self._lifecycle.in_flight >= self._settings.max_concurrency:
            raise Full(f"The worker takes {self._settings.max_concurrency} requests at a time.")

    def _added(self) -> Headers:
        # A caller that keeps its connection would meet a closed door next time.
        return [(b"connection", b"close")] if self._drain.active else []

    async def _pass(self, scope: Scope, receive: Receive, relay: Relay, exchange: Exchange) -> int:
        connection = await self._pool.acquire(self._address)
        try:
            exchange.carry(connection)
            await self._send_request(connection, scope, receive, exchange)
            await exchange.head(connection)
            await relay.run(connection)
            return connection.status
        finally:
            exchange.let_go()
            self._pool.release(self._address, connection)

    async def _send_request(
        self, connection: Connection, scope: Scope, receive: Receive, exchange: Exchange
    ) -> None:
        method = scope["method"].encode()
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        headers = request_headers(scope["headers"])
        chunked = header(scope["headers"], b"transfer-encoding") is not None
        if chunked:
            headers = [(n, v) for n, v in headers if n != b"content-length"]
            headers.append((b"transfer-encoding", b"chunked"))
        head = request_head(method, target, self._host, headers, keep=self._pool.keeps_connections)
        connection.start(head, head_only=method == b"HEAD")
        more = chunked or header(scope["headers"], b"content-length") not in {None, b"0"}
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone("the client disconnected while it sent its request")
            body, more = message.get("body", b""), message.get("more_body", False)
            if body:
                await connection.write(b"%x\r\n%b\r\n" % (len(body), body) if chunked else body)
        if chunked:
            await connection.write(_LAST_CHUNK)
        exchange.watch_client(receive)

    async def _refuse(self, send: Send, refusal: Refused) -> None:
        self._measures.rejected(refusal.status, refusal.reason.decode())
        body = openai.error_body(refusal.status, str(refusal), code=refusal.code)
        retry_after = b"%d" % openai.RETRY_AFTER_SECONDS
        headers = [(b"retry-after", retry_after), (REFUSED, refusal.reason), *self._added()]
        await answer(send, refusal.status, body, headers)


def _broken_body(error: UpstreamError) -> bytes:
    if isinstance(error, OutOfTime):
        return openai.error_body(504, f"The request was ended: {error}.", code="timeout")
    return openai.error_body(502, f"The model failed: {error}.", code="model_failed")
