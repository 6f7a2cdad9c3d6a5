"""``/v1/sync-tasks`` and ``/v1/streaming-tasks``: a model's own routes, by the wire contract."""

from components.domain.registration import EndpointType
from services.core.errors import UpstreamError
from services.core.exchange import Budgets, Scope, Send
from services.core.relay import answer

from .body import Body, BodyBudget
from .carrier import refusal_of
from .detail import detail_body
from .directory import Caller, Directory, Route
from .errors import (
    AllBusy,
    MethodNotAllowed,
    NoWorker,
    Refused,
    TimedOut,
    TooLargeAnswer,
    UnknownModel,
    WorkerLost,
)
from .inference import outgoing, refusal_headers
from .openai_api import budgets
from .settings import GatewaySettings
from .task_replies import EventsReply, WholeReply, event, outcome
from .task_request import (
    Question,
    as_stream,
    check_type,
    endpoint_asked,
    path_at_model,
    read_question,
)
from .trip import Passage, Plan, Reply, Trip

_OF_THE_MODEL = (AllBusy, NoWorker, TimedOut, TooLargeAnswer, WorkerLost)
"""What isn't wrong with the request: told as the task's outcome, not as an error of the route."""
_REQUEST_TIMEOUT = 408
_REWRITTEN = frozenset({b"content-type", b"accept", b"accept-encoding"})


class TaskApi:
    """One of the two routes.

    Args:
        directory: keys and endpoints.
        settings: limits.
        budget: what all requests may hold at once.
        streaming: whether it is the route whose answers come in pieces.
    """

    def __init__(
        self,
        directory: Directory,
        settings: GatewaySettings,
        budget: BodyBudget,
        *,
        streaming: bool,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._budget = budget
        self._streaming = streaming

    def plan(self, scope: Scope, caller: Caller, body: Body, trip: Trip) -> Plan:
        """Read a task; the worker gets its arguments alone."""
        if scope["method"] != "POST":
            raise MethodNotAllowed(f"{scope['method']} isn't allowed here.")
        route = self._route(endpoint_asked(scope), caller)
        trip.endpoint, trip.stream = route.name, self._streaming
        question = read_question(body.data)
        registered = route.registration
        path = registered.stream_path if self._streaming else registered.predict_path
        target = path_at_model(question, path)
        body.data = question.content()
        if self._streaming and registered.openai:
            body.data = as_stream(body.data)
        headers = [
            (name, value)
            for name, value in outgoing(scope["headers"], len(body.data), trip.request_id)
            if name not in _REWRITTEN
        ]
        return Plan(
            route=route,
            path=target,
            headers=[*headers, (b"content-type", b"application/json")],
            budgets=self._budgets(route, question),
            reply=self._reply,
            patience_seconds=question.patience_seconds,
        )

    def _route(self, name: str, caller: Caller) -> Route:
        route = self._directory.endpoint(name, caller)
        if not self._streaming:
            check_type(route, EndpointType.SYNC, EndpointType.STREAMING)
            return route
        if not (caller.admin or caller.team == route.team):
            raise UnknownModel(
                f"The endpoint {name[:100]!r} does not exist or you have no access to it."
            )
        check_type(route, EndpointType.STREAMING)
        return route

    def _budgets(self, route: Route, question: Question) -> Budgets:
        given = budgets(route, self._settings)
        if question.timeout_seconds is None:
            return given
        return Budgets(
            given.first_byte_seconds,
            given.idle_seconds,
            given.total_seconds,
            wall_seconds=question.timeout_seconds,
        )

    def _reply(self, passage: Passage) -> Reply:
        limit = self._settings.max_answer_bytes
        if self._streaming:
            return EventsReply(passage, self._budget, limit, _explained)
        return WholeReply(passage, self._budget, limit)

    async def refuse(self, send: Send, trip: Trip, refusal: Refused) -> None:
        """Answer what has no answer of the model: as the task's outcome, or as an error."""
        headers = refusal_headers(refusal, trip.request_id)
        if isinstance(refusal, TimedOut) and not self._streaming:
            trip.status = _REQUEST_TIMEOUT
            await answer(send, trip.status, detail_body("Request timed out."), headers)
        elif isinstance(refusal, _OF_THE_MODEL):
            trip.status = 200
            failed = outcome(_status_of(refusal), traceback=str(refusal))
            if self._streaming:
                await _only_event(send, event(failed), headers)
            else:
                await answer(send, trip.status, failed, headers)
        else:
            await answer(send, refusal.status, detail_body(str(refusal)), headers)


async def _only_event(send: Send, data: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    kind = (b"content-type", b"text/event-stream; charset=utf-8")
    length = (b"content-length", b"%d" % len(data))
    await send({"type": "http.response.start", "status": 200, "headers": [kind, length, *headers]})
    await send({"type": "http.response.body", "body": data})


def _status_of(refusal: Refused) -> int:
    return _REQUEST_TIMEOUT if isinstance(refusal, TimedOut) else refusal.status


def _explained(error: UpstreamError) -> tuple[int, str]:
    refusal = refusal_of(error)
    return _status_of(refusal), str(refusal)
