"""OpenAI's API: the body names the endpoint, and goes to the worker as it came."""

from services.core import openai
from services.core.errors import UpstreamError
from services.core.exchange import Budgets, Scope, Send
from services.core.relay import Relay, answer

from . import call as calls
from .body import Body
from .carrier import refusal_of
from .directory import Caller, Directory, Route
from .errors import BadRequest, Refused
from .inference import outgoing, refusal_headers
from .settings import GatewaySettings
from .trip import Passage, Plan, Trip


class OpenAiApi:
    """One route of OpenAI's API.

    Args:
        directory: keys and endpoints.
        settings: time limits.
        path: the path that the worker knows the route by.
    """

    def __init__(self, directory: Directory, settings: GatewaySettings, path: bytes) -> None:
        self._directory = directory
        self._settings = settings
        self._path = path

    def plan(self, scope: Scope, caller: Caller, body: Body, trip: Trip) -> Plan:
        """Read the few fields that routing needs."""
        call = calls.read_call(body.data)
        route = self._directory.route(call.model, caller)
        trip.endpoint, trip.stream = route.name, call.stream
        self._refuse_impossible(call, route)
        query = scope["query_string"]
        return Plan(
            route=route,
            path=self._path + b"?" + query if query else self._path,
            headers=outgoing(scope["headers"], len(body.data), trip.request_id),
            budgets=budgets(route, self._settings),
            reply=_reply,
        )

    async def refuse(self, send: Send, trip: Trip, refusal: Refused) -> None:
        """Answer with OpenAI's error object."""
        headers = refusal_headers(refusal, trip.request_id)
        await answer(send, refusal.status, _body(refusal), headers)

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


def budgets(route: Route, settings: GatewaySettings) -> Budgets:
    """Return the time budgets of a request, all of them derived from the endpoint's one."""
    total = float(route.registration.request_timeout_seconds)
    return Budgets(total, min(settings.idle_timeout_seconds, total), total)


def _reply(passage: Passage) -> Relay:
    return Relay(passage.send, passage.exchange, passage.added, _broken_body)


def _broken_body(error: UpstreamError) -> bytes:
    return _body(refusal_of(error))


def _body(refusal: Refused) -> bytes:
    return openai.error_body(refusal.status, str(refusal), code=refusal.code, param=refusal.param)
