"""The way of a request through the worker: any method, any path, nothing changed."""

import asyncio

import structlog

from services.core import openai
from services.core.connection import Connection, Headers
from services.core.errors import (
    BodyTooLarge,
    ClientGone,
    ConnectFailed,
    OutOfTime,
    UpstreamError,
)
from services.core.exchange import Budgets, Exchange, Receive, Scope, Send
from services.core.pool import Pool
from services.core.relay import (
    REFUSED,
    REQUEST_ID,
    Relay,
    answer,
    header,
    read_body,
    request_head,
    request_headers,
)
from services.core.server import Lifecycle

from .answers import WatchedSend
from .drain import Drain
from .errors import BodyOverLimit, Draining, Full, Invalid, Refused, TasksOnly, Unreachable
from .health import ModelHealth
from .hooks import Finished, PostHooks
from .measures import Measures
from .settings import ForwarderSettings
from .validation import Checks

_STATUS_CLIENT_GONE = 499
_LAST_CHUNK = b"0\r\n\r\n"
_WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})


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
        checks: Checks,
        hooks: PostHooks,
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
        self._checks = checks
        self._hooks = hooks
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
        watched = None
        if self._hooks:
            watched = send = WatchedSend(send, keeps=self._hooks.carries_results)
        relay = Relay(send, exchange, self._added(), _broken_body, self._health.heard)
        status, error = 0, ""
        self._lifecycle.enter()
        self._measures.in_flight.inc()
        try:
            status = await self._pass(scope, receive, relay, exchange)
            error = type(relay.broken).__name__ if relay.broken else ""
        except ClientGone:
            status, error = _STATUS_CLIENT_GONE, ClientGone.__name__
        except (Invalid, BodyOverLimit) as problem:
            status, error = problem.status, type(problem).__name__
            await _answer_refusal(send, problem, self._added())
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
            if watched is not None:
                self._run_hooks(watched, request_id.decode("latin-1"), status, seconds, error)

    def _run_hooks(
        self, watched: WatchedSend, request_id: str, status: int, seconds: float, error: str
    ) -> None:
        broken = watched.streamed and error and status < 400
        self._hooks.start(
            Finished(
                kind="stream" if watched.streamed else "request",
                id=request_id,
                status_code=502 if broken else status,
                seconds=seconds,
                request_bytes=None,
                answer_bytes=watched.answer_bytes,
                result=watched.result(),
                traceback=error or None,
            )
        )

    def _admit(self) -> None:
        if self._settings.mode == "async":
            raise TasksOnly("This endpoint takes tasks, and no requests.")
        if self._drain.refusing:
            raise Draining("The worker is ending.")
        if self._lifecycle.in_flight >= self._settings.max_concurrency:
            raise Full(f"The worker takes {self._settings.max_concurrency} requests at a time.")

    def _added(self) -> Headers:
        # A caller that keeps its connection would meet a closed door next time.
        return [(b"connection", b"close")] if self._drain.active else []

    async def _pass(self, scope: Scope, receive: Receive, relay: Relay, exchange: Exchange) -> int:
        body = None
        if self._checks and scope["method"] in _WITH_BODIES:
            body = await self._checked(receive)
        connection = await self._pool.acquire(self._address)
        try:
            exchange.carry(connection)
            if body is None:
                await self._pass_request(connection, scope, receive)
            else:
                headers = [(b"content-length", b"%d" % len(body))]
                self._start(connection, scope, headers)
                await connection.write(body)
            exchange.watch_client(receive)
            await exchange.head(connection)
            await relay.run(connection)
            return connection.status
        finally:
            exchange.let_go()
            self._pool.release(self._address, connection)

    async def _checked(self, receive: Receive) -> bytes:
        """Read the whole body and let the hooks see it before a connection is made."""
        limit = self._settings.max_body_bytes
        try:
            async with asyncio.timeout(self._settings.request_timeout_seconds):
                body = await read_body(receive, limit, lambda _size: None)
        except BodyTooLarge as error:
            raise BodyOverLimit(f"The body is larger than {limit} bytes.") from error
        except TimeoutError as error:
            raise OutOfTime("the request's body didn't arrive in time") from error
        await self._checks.check(body)
        return body

    def _start(self, connection: Connection, scope: Scope, framing: Headers) -> None:
        method = scope["method"].encode()
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        headers = request_headers(scope["headers"])
        if framing:
            headers = [(n, v) for n, v in headers if n.lower() != b"content-length"]
            headers += framing
        keep = self._pool.keeps_connections
        head = request_head(method, target, self._host, headers, keep=keep)
        connection.start(head, head_only=method == b"HEAD")

    async def _pass_request(self, connection: Connection, scope: Scope, receive: Receive) -> None:
        chunked = header(scope["headers"], b"transfer-encoding") is not None
        self._start(connection, scope, [(b"transfer-encoding", b"chunked")] if chunked else [])
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

    async def _refuse(self, send: Send, refusal: Refused) -> None:
        self._measures.rejected(refusal.status, refusal.reason.decode())
        headers = [(REFUSED, refusal.reason), *self._added()]
        if refusal.status in {429, 503}:
            headers.append((b"retry-after", b"%d" % openai.RETRY_AFTER_SECONDS))
        await _answer_refusal(send, refusal, headers)


async def _answer_refusal(send: Send, refusal: Refused, headers: Headers) -> None:
    body = openai.error_body(refusal.status, str(refusal), code=refusal.code)
    await answer(send, refusal.status, body, headers)


def _broken_body(error: UpstreamError) -> bytes:
    if isinstance(error, OutOfTime):
        return openai.error_body(504, f"The request was ended: {error}.", code="timeout")
    return openai.error_body(502, f"The model failed: {error}.", code="model_failed")
