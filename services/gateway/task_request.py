"""Reading a sync or streaming task: what is asked, of which endpoint, and where at its model."""

import re
from typing import ClassVar
from urllib.parse import parse_qs, unquote

import msgspec

from components.domain.registration import EndpointType
from services.core.exchange import Scope

from .directory import Route
from .errors import BadRequest
from .submission import Submission, read_submission

_LONGEST_SECONDS = 7 * 86_400
_MOST_RETRIES = 1000
_LONGEST_WAIT_SECONDS = 5.0
_WAIT_BASE = 1.2
_DEFAULT_RETRIES = 8

_PATH = re.compile(r"(?:/[\w.~!$&'()*+,;=:@%-]+)*/?(?:\?[\w.~!$&'()*+,;=:@%/?-]*)?", re.ASCII)
_OF_THE_FORWARDER = frozenset({"/healthz", "/readyz", "/livez/model", "/metrics", "/drain"})
"""What the worker answers itself, in place of the model."""


class Question(Submission):
    """A task that is answered at once."""

    REFUSED: ClassVar[tuple[str, ...]] = ("cloudpickle", "callback_url")

    timeout_seconds: float | None = None
    num_retries: int | None = None

    @property
    def patience_seconds(self) -> float:
        """How long to wait for a place at busy workers: what the retries would wait in all."""
        retries = _DEFAULT_RETRIES if self.num_retries is None else self.num_retries
        waits = (min(_LONGEST_WAIT_SECONDS, _WAIT_BASE ** (n + 1)) for n in range(retries))
        return sum(waits)


def read_question(body: bytes) -> Question:
    """Read a task's body.

    Raises:
        BadRequest: it can't be used; the message names the field.
    """
    question = read_submission(body, Question)
    seconds, retries = question.timeout_seconds, question.num_retries
    if seconds is not None and not 0 < seconds <= _LONGEST_SECONDS:
        raise BadRequest(
            f"timeout_seconds: it must be above 0 and at most {_LONGEST_SECONDS}.",
            param="timeout_seconds",
        )
    if retries is not None and not 0 <= retries <= _MOST_RETRIES:
        raise BadRequest(
            f"num_retries: it must be between 0 and {_MOST_RETRIES}.", param="num_retries"
        )
    return question


def as_stream(content: bytes) -> bytes:
    """Ask an engine that speaks OpenAI for a stream: it has one route for both kinds of answer.

    Raises:
        BadRequest: the arguments aren't an object.
    """
    try:
        fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise BadRequest("args: this endpoint's model takes an object.", param="args") from None
    return msgspec.json.encode({**fields, "stream": True})


def endpoint_asked(scope: Scope) -> str:
    """Return the endpoint that the query names.

    Raises:
        BadRequest: it names none.
    """
    query = parse_qs(scope["query_string"].decode("latin-1"))
    names = query.get("model_endpoint_id", [])
    if not names:
        raise BadRequest("model_endpoint_id: say which endpoint, in the query.")
    return names[0]


def path_at_model(question: Question, registered: str) -> bytes:
    """Return where the task is posted to: the endpoint's path, or another of the same model.

    Raises:
        BadRequest: it isn't a path of the model.
    """
    path = question.destination_path or registered
    if not path:
        raise BadRequest(
            "The endpoint declares no route for this; name one in 'destination_path'.",
            param="destination_path",
        )
    plain = unquote(path.partition("?")[0])
    if not _PATH.fullmatch(path) or plain in _OF_THE_FORWARDER:
        raise BadRequest(
            f"destination_path: {path[:100]!r} isn't a path of the model.",
            param="destination_path",
        )
    return path.encode()


def check_type(route: Route, *allowed: EndpointType) -> None:
    """Check that an endpoint answers this kind of task.

    Raises:
        BadRequest: it doesn't; the message says which route does.
    """
    kind = route.registration.type
    if kind in allowed:
        return
    instead = {EndpointType.ASYNC: "/v1/async-tasks", EndpointType.SYNC: "/v1/sync-tasks"}
    raise BadRequest(
        f"Unsupported inference type: the endpoint {route.name!r} is of type {kind};"
        f" use {instead.get(kind, '/v1/streaming-tasks')}."
    )
