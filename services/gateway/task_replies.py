"""How the answer of a model becomes that of a task: one document, or one event for each of its."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from services.core.connection import Connection, Headers
from services.core.errors import ClientGone, UpstreamError
from services.core.exchange import Exchange, Send
from services.core.relay import answer, header

from .body import BodyBudget
from .errors import BadRequest, TooLargeAnswer
from .events import DONE, EventReader
from .trip import Passage

Explain = Callable[[UpstreamError], tuple[int, str]]
"""Tells the status and the words for what broke an answer."""


def outcome(status_code: int, *, result: object = None, traceback: str | None = None) -> bytes:
    """Write what came of a task, or of one piece of its answer."""
    return msgspec.json.encode(
        {
            "status": "FAILURE" if traceback is not None else "SUCCESS",
            "result": result,
            "traceback": traceback,
            "status_code": status_code,
        }
    )


def event(document: bytes) -> bytes:
    """Return a document as an event."""
    return b"data: " + document + b"\n\n"


class _TaskReply:
    """What both kinds have in common."""

    def __init__(self, passage: Passage, budget: BodyBudget, limit_bytes: int) -> None:
        self._send: Send = passage.send
        self._exchange: Exchange = passage.exchange
        self._added: Headers = passage.added
        self._budget = budget
        self._limit_bytes = limit_bytes
        self.began = False
        self.status = 0
        self.first_byte_seconds: float | None = None
        self.sent_bytes = 0
        self.broken: UpstreamError | None = None

    async def _whole(self, connection: Connection) -> bytes:
        """Read a whole answer, counted in what the process may hold."""
        parts: list[bytes] = []
        held = 0
        try:
            while piece := await self._exchange.read(connection):
                if held + len(piece) > self._limit_bytes:
                    raise TooLargeAnswer(f"The answer is larger than {self._limit_bytes} bytes.")
                self._budget.take(len(piece))
                held += len(piece)
                parts.append(piece)
        finally:
            self._budget.give_back(held)
        return b"".join(parts)

    def _failure(self, status: int, body: bytes) -> bytes:
        """Return a model's refusal as a task's outcome.

        Raises:
            BadRequest: the model says that the request is wrong, which is the client's to know.
        """
        if status == 400:
            raise BadRequest(f"Invalid request: {_text(body)}")
        return outcome(status, traceback=_traceback(body))

    def _count(self, sent: bytes) -> None:
        if self.first_byte_seconds is None:
            self.first_byte_seconds = self._exchange.elapsed()
        self.sent_bytes += len(sent)


class WholeReply(_TaskReply):
    """Answers a sync task with one document, in which the model's is a text."""

    async def run(self, connection: Connection) -> None:
        """Read the model's answer, then answer."""
        body = await self._whole(connection)
        if 200 <= connection.status < 300:
            document = outcome(200, result={"result": _json_text(body)})
        else:
            document = self._failure(connection.status, body)
        self._count(document)
        self.began = True
        self.status = 200
        await answer(self._send, self.status, document, self._added)


class EventsReply(_TaskReply):
    """Answers a streaming task: each event of the model in an event of ours, as it comes."""

    def __init__(
        self, passage: Passage, budget: BodyBudget, limit_bytes: int, explain: Explain
    ) -> None:
        super().__init__(passage, budget, limit_bytes)
        self._explain = explain
        self._events = EventReader(limit_bytes)

    async def run(self, connection: Connection) -> None:
        """Pass events on; an answer that breaks is ended with an event that says so."""
        if not 200 <= connection.status < 300:
            failure = self._failure(connection.status, await self._whole(connection))
            await self._begin()
            await self._write(event(failure), last=True)
            return
        if not (header(connection.headers, b"content-type") or b"").startswith(
            b"text/event-stream"
        ):
            document = outcome(200, result={"result": _value(await self._whole(connection))})
            await self._begin()
            await self._write(event(document), last=True)
            return
        await self._begin()
        try:
            while piece := await self._exchange.read(connection):
                await self._write(b"".join(map(_translated, self._events.feed(piece))))
            await self._write(b"".join(map(_translated, self._events.end())), last=True)
        except UpstreamError as error:
            await self._broke(error)

    async def _begin(self) -> None:
        self.began = True
        self.status = 200
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            *self._added,
        ]
        await self._send({"type": "http.response.start", "status": self.status, "headers": headers})

    async def _write(self, data: bytes, *, last: bool = False) -> None:
        if data or last:
            if data:
                self._count(data)
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def _broke(self, error: UpstreamError) -> None:
        self.broken = error
        if isinstance(error, ClientGone):
            return
        status, words = self._explain(error)
        await self._write(event(outcome(status, traceback=words)), last=True)


def _translated(data: bytes) -> bytes:
    """Return one event of the model as one of ours; of what is only its own, nothing."""
    if data == DONE:
        return b""
    value = _value(data)
    error = _error_of(value)
    if error is not None:
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return event(outcome(status, traceback=str(error["message"])))
    return event(outcome(200, result={"result": value}))


def _error_of(value: object) -> dict[str, Any] | None:
    """Return the error of an event that is nothing but one, as engines and forwarders send it."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("error"), dict):
        error = value["error"]
        return error if "message" in error else None
    return None


def _value(data: bytes) -> object:
    """Return JSON as what it says, anything else as text."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _text(data)


def _json_text(body: bytes) -> str:
    """Return the model's document as the wire contract has it: text, spaced as Python spaces it."""
    try:
        return json.dumps(json.loads(body))
    except (ValueError, RecursionError):
        return json.dumps(_text(body))


def _traceback(body: bytes) -> str:
    """Return what a model said of its failure, from where its kind of server puts it."""
    value = _value(body)
    if isinstance(value, dict):
        detail = value.get("detail")
        if isinstance(detail, dict) and isinstance(detail.get("traceback"), str):
            return detail["traceback"]
    return _text(body)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
