"""The way of an inference request: check, choose a worker, carry, and tell what went wrong."""

import math
from dataclasses import dataclass, field

import structlog

from services.core import openai
from services.core.connection import Connection, Headers
from services.core.errors import (
    ClientGone,
    ConnectFailed,
    OutOfTime,
    UpstreamError,
    WorkerVanished,
)
from services.core.exchange import Budgets, Exchange, Receive, Scope, Send
from services.core.pool import Address, Pool
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
from services.core.workers import Target

from . import call as calls
from .body import UPLOAD_SECONDS, Body, BodyBudget
from .directory import Directory, Route
from .errors import (
    AllBusy,
    BadRequest,
    NotReady,
    NoWorker,
    Overloaded,
    Refused,
    SlowBody,
    TimedOut,
    TooLarge,
    WorkerLost,
)
from .measures import Measures
from .settings import GatewaySettings
from .worker_pool import Workers

_SMALL_BODY_BYTES = 64 * 1024
_OURS = (b"authorization", b"content-length", REQUEST_ID)
_OUR_PREFIX = b"x-llm-platform-"
_STATUS_CLIENT_GONE = 499
_FULL = b"full"


@dataclass(slots=True)
class Trip:
    """What is known of one request while it passes, for its log line and metrics."""

    path: str
    request_id: bytes
    team: str = ""
    endpoint: str = ""
    worker: str = ""
    status: int = 0
    tries: int = 0
    error: str = ""
    first_byte_seconds: float | None = None
    sent_bytes: int = 0
    stream: bool = False
    tried: set[Address] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Passage:
    """One request on its way to a worker."""

    place: Target
    target: bytes
    headers: Headers
    body: Body
    send: Send
    trip: Trip
    exchange: Exchange


class Inference:
    """An ASGI application for the routes that end at a worker."""

    def __init__(
        self,
        *,
        settings: GatewaySettings,
        directory: Directory,
        workers: Workers,
        pool: Pool,
        measures: Measures,
        lifecycle: Lifecycle,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._workers = workers
        self._pool = pool
        self._measures = measures
        self._lifecycle = lifecycle
        self._log = log
        self._budget = BodyBudget(settings.max_held_bytes)

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, upstream_path: bytes
    ) -> None:
        """Carry one request out.

        Args:
            scope: the request's ASGI scope.
            receive: the client's side, to us.
            send: the client's side, from us.
            upstream_path: the path that the worker knows the route by.
        """
        trip = Trip(scope["path"], calls.request_id(scope["headers"]))
        exchange = Exchange(Budgets(UPLOAD_SECONDS, UPLOAD_SECONDS, UPLOAD_SECONDS))
        body = Body(self._budget)
        self._lifecycle.enter()
        try:
            route = await self._check(scope["headers"], receive, trip, body)
            exchange.allow(self._budgets(route))
            exchange.watch_client(receive)
            headers = _outgoing(scope["headers"], len(body.data), trip.request_id)
            query = scope["query_string"]
            target = upstream_path + b"?" + query if query else upstream_path
            place = (route.namespace, route.name)
            await self._carry(Passage(place, target, headers, body, send, trip, exchange))
        except ClientGone:
            trip.status, trip.error = _STATUS_CLIENT_GONE, ClientGone.__name__
        except Refused as refusal:
            await self._refuse(send, trip, refusal)
        finally:
            body.drop()
            exchange.close()
            self._lifecycle.leave()
            self._tell(scope["method"], trip, exchange.elapsed())

    async def _check(self, headers: Headers, receive: Receive, trip: Trip, body: Body) -> Route:
        """Read the request and return where it goes, or refuse it."""
        if not self._directory.loaded:
            raise NotReady("The gateway is starting.")
        caller = self._directory.caller(calls.api_key(headers))
        trip.team = caller.team
        await body.read(headers, receive, self._settings.max_body_bytes)
        call = calls.read_call(body.data)
        route = self._directory.route(call.model, caller)
        trip.endpoint, trip.stream = route.name, call.stream
        self._refuse_impossible(call, route)
        return route

    def _refuse_impossible(self, call: calls.Call, route: Route) -> None:
        seconds = route.registration.request_timeout_seconds
        possible = seconds * self._settings.fastest_tokens_per_second
        if call.max_tokens > possible and not call.stream:
            raise BadRequest(
                f"{call.max_tokens} tokens can't be made within the limit of {seconds} s;"
                f" ask for at most {int(possible)}, or use streaming ('stream': true).",
                param="max_tokens",
                code="exceeds_time_limit",
            )

    def _budgets(self, route: Route) -> Budgets:
        total = float(route.registration.request_timeout_seconds)
        return Budgets(total, min(self._settings.idle_timeout_seconds, total), total)

    async def _carry(self, passage: Passage) -> None:
        try:
            await self._try_workers(passage)
        except UpstreamError as error:
            raise _refusal(error) from error

    async def _try_workers(self, passage: Passage) -> None:
        """Offer the request to workers until one takes it; refuse it when none does."""
        trip, name = passage.trip, passage.place[1]
        busy = False
        while trip.tries < self._settings.max_tries:
            worker = self._workers.pick(passage.place, trip.tried)
            if worker is None:
                break
            trip.tries += 1
            trip.tried.add(worker.address)
            worker.exchanges.add(passage.exchange)
            try:
                refused = await self._try(worker.address, passage)
            except ConnectFailed as error:
                self._log.warning("worker can't be reached", worker=trip.worker, error=str(error))
                refused = b"unreachable"
            finally:
                worker.exchanges.discard(passage.exchange)
            if refused is None:
                return
            self._measures.retry(name, refused)
            busy = busy or refused == _FULL
        if busy:
            raise AllBusy(f"Every worker of {name!r} is busy; try again shortly.")
        raise NoWorker(f"The model {name!r} has no worker that takes requests right now.")

    async def _try(self, address: Address, passage: Passage) -> bytes | None:
        """Send the request to one worker; return why it was refused, or None when it is done."""
        passage.trip.worker = str(address)
        connection = await self._pool.acquire(address)
        try:
            passage.exchange.carry(connection)
            await self._send_request(connection, passage)
            await passage.exchange.head(connection)
            refused = header(connection.headers, REFUSED)
            if refused is not None:
                await self._discard(connection, passage.exchange)
                return refused
            passage.body.drop()  # it is a worker's now: nobody is tried after it
            await self._pass_on(connection, passage)
            return None
        finally:
            passage.exchange.let_go()
            self._pool.release(address, connection)

    async def _send_request(self, connection: Connection, passage: Passage) -> None:
        host = passage.trip.worker.encode()
        keep = self._pool.keeps_connections
        head = request_head(b"POST", passage.target, host, passage.headers, keep=keep)
        body = passage.body.data
        if len(body) <= _SMALL_BODY_BYTES:
            connection.start(head + body, head_only=False)
        else:
            connection.start(head, head_only=False)
            await connection.write(body)

    async def _discard(self, connection: Connection, exchange: Exchange) -> None:
        while await exchange.read(connection):
            pass

    async def _pass_on(self, connection: Connection, passage: Passage) -> None:
        trip = passage.trip
        added: Headers = [(REQUEST_ID, trip.request_id)]
        if self._lifecycle.draining:
            added.append((b"connection", b"close"))
        relay = Relay(passage.send, passage.exchange, added, lambda error: _body(_refusal(error)))
        try:
            await relay.run(connection)
        finally:
            if relay.began:
                trip.status = connection.status
            trip.first_byte_seconds = relay.first_byte_seconds
            trip.sent_bytes = relay.sent_bytes
            if relay.broken is not None:
                trip.error = type(relay.broken).__name__

    async def _refuse(self, send: Send, trip: Trip, refusal: Refused) -> None:
        trip.status, trip.error = refusal.status, type(refusal).__name__
        await answer(
            send, refusal.status, _body(refusal), refusal_headers(refusal, trip.request_id)
        )

    def _tell(self, method: str, trip: Trip, seconds: float) -> None:
        self._measures.request(
            trip.endpoint, trip.status, seconds, trip.first_byte_seconds, trip.error
        )
        self._log.info(
            "request",
            request_id=trip.request_id.decode(),
            method=method,
            path=trip.path,
            team=trip.team,
            endpoint=trip.endpoint,
            worker=trip.worker,
            tries=trip.tries,
            status=trip.status,
            stream=trip.stream,
            seconds=round(seconds, 4),
            first_byte_seconds=trip.first_byte_seconds and round(trip.first_byte_seconds, 4),
            sent_bytes=trip.sent_bytes,
            error=trip.error,
        )


def _outgoing(headers: Headers, length: int, request_id: bytes) -> Headers:
    """Return the client's headers without its key and without what only we may say."""
    kept = [
        (name, value)
        for name, value in request_headers(headers)
        if name not in _OURS and not name.startswith(_OUR_PREFIX)
    ]
    return [*kept, (b"content-length", b"%d" % length), (REQUEST_ID, request_id)]


def refusal_headers(refusal: Refused, request_id: bytes) -> Headers:
    """Return the headers that go with a refusal."""
    headers: Headers = [(REQUEST_ID, request_id)]
    if refusal.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(refusal.retry_after_seconds)))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="llm-platform"'))
    if isinstance(refusal, TooLarge | SlowBody | Overloaded):
        headers.append((b"connection", b"close"))  # the rest of the body isn't read
    return headers


def _body(refusal: Refused) -> bytes:
    return openai.error_body(refusal.status, str(refusal), code=refusal.code, param=refusal.param)


def _refusal(error: UpstreamError) -> Refused:
    match error:
        case ClientGone():
            raise error
        case OutOfTime():
            return TimedOut(f"The request was ended: {error}.")
        case WorkerVanished():
            lost = WorkerLost("The worker was removed while it worked on the request.")
            lost.status = 503
            return lost
        case _:
            return WorkerLost(f"The worker failed: {error}.")
