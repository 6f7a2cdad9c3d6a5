"""The way of an inference request: check it, carry it, and tell what came of it."""

import math
from typing import Protocol

import structlog

from services.core.connection import Headers
from services.core.errors import ClientGone
from services.core.exchange import Budgets, Exchange, Receive, Scope, Send
from services.core.relay import REQUEST_ID, request_headers
from services.core.server import Lifecycle

from . import call as calls
from .body import UPLOAD_SECONDS, Body, BodyBudget
from .carrier import Carrier
from .demand import Demand
from .directory import Caller, Directory
from .errors import NotReady, Overloaded, Refused, SlowBody, TooLarge
from .measures import Measures
from .routing import place_of
from .settings import GatewaySettings
from .trip import Passage, Plan, Trip

_OURS = (b"authorization", b"content-length", REQUEST_ID)
_OUR_PREFIX = b"x-llm-platform-"
_STATUS_CLIENT_GONE = 499


class Api(Protocol):
    """One way of asking a model: how its requests are read and its errors are told."""

    def plan(self, scope: Scope, caller: Caller, body: Body, trip: Trip) -> Plan:
        """Read a request; ``body.data`` is left to be what the worker gets.

        Raises:
            Refused: it can't be carried out.
        """
        ...

    async def refuse(self, send: Send, trip: Trip, refusal: Refused) -> None:
        """Answer a request that got nothing from a worker."""
        ...


class Inference:
    """An ASGI application for the routes that end at a worker.

    Args:
        settings: the limits of bodies.
        directory: keys and endpoints.
        carrier: brings requests to workers.
        demand: told of each request while it is open.
        budget: what all requests may hold at once.
        measures: the gateway's metrics.
        lifecycle: counts the open requests, and knows of SIGTERM.
        log: gets a line for each request.
    """

    def __init__(
        self,
        *,
        settings: GatewaySettings,
        directory: Directory,
        carrier: Carrier,
        demand: Demand,
        budget: BodyBudget,
        measures: Measures,
        lifecycle: Lifecycle,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._carrier = carrier
        self._demand = demand
        self._budget = budget
        self._measures = measures
        self._lifecycle = lifecycle
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send, api: Api) -> None:
        """Carry one request out.

        Args:
            scope: the request's ASGI scope.
            receive: the client's side, to us.
            send: the client's side, from us.
            api: how the request is read and answered.
        """
        trip = Trip(scope["path"], calls.request_id(scope["headers"]))
        exchange = Exchange(Budgets(UPLOAD_SECONDS, UPLOAD_SECONDS, UPLOAD_SECONDS))
        body = Body(self._budget)
        self._lifecycle.enter()
        try:
            caller = self._caller(scope["headers"], trip)
            await body.read(scope["headers"], receive, self._settings.max_body_bytes)
            plan = api.plan(scope, caller, body, trip)
            exchange.allow(plan.budgets)
            exchange.watch_client(receive)
            passage = Passage(plan, place_of(plan.route), body, send, trip, exchange)
            passage.added = self._added(trip)
            await self._carry(passage)
        except ClientGone:
            trip.status, trip.error = _STATUS_CLIENT_GONE, ClientGone.__name__
        except Refused as refusal:
            trip.status, trip.error = refusal.status, type(refusal).__name__
            await api.refuse(send, trip, refusal)
        finally:
            body.drop()
            exchange.close()
            self._lifecycle.leave()
            self._tell(scope["method"], trip, exchange.elapsed())

    def _caller(self, headers: Headers, trip: Trip) -> Caller:
        if not self._directory.loaded:
            raise NotReady("The gateway is starting.")
        caller = self._directory.caller(calls.api_key(headers))
        trip.team = caller.team
        return caller

    async def _carry(self, passage: Passage) -> None:
        route = passage.plan.route
        self._demand.enter(route)
        try:
            await self._carrier.carry(passage)
        finally:
            self._demand.leave(route)

    def _added(self, trip: Trip) -> Headers:
        added: Headers = [(REQUEST_ID, trip.request_id)]
        if self._lifecycle.draining:
            added.append((b"connection", b"close"))
        return added

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
            held_seconds=round(trip.held_seconds, 4),
            first_byte_seconds=trip.first_byte_seconds and round(trip.first_byte_seconds, 4),
            sent_bytes=trip.sent_bytes,
            error=trip.error,
        )


def outgoing(headers: Headers, length: int, request_id: bytes) -> Headers:
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
