"""What runs after the model, on requests, streams and tasks alike; it never changes an answer.

A callback says what became of a request. It carries the result of a plain answer; of a stream it
carries that it ended and how long it was, not the text: the client has had it, and keeping all of
it in memory until the end would cost as much as the streams are long. Callbacks may come twice.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from components.domain.hooks import Callback, Logging
from services.core.backoff import Backoff
from services.core.errors import OutboundFailed, OutboundRefused

from .measures import Measures

if TYPE_CHECKING:
    from services.core.outbound import Outbound

RESULT_BYTES = 1024 * 1024
"""The largest answer that a callback carries for a request; tasks carry theirs whole."""

_TRIES = 3
_MOST_WAITING = 1000
_CLOSE_SECONDS = 15


@dataclass(frozen=True)
class Finished:
    """A request or a task that is over.

    Args:
        kind: ``task``, ``request`` or ``stream``.
        id: the task's id, or the request's.
        status_code: the model's status, or the one that says why there is none.
        seconds: how long it took.
        request_bytes: the size of what was asked; None when it was passed on unread.
        answer_bytes: the size of the answer.
        result: the answer, when it is carried.
        traceback: more about a failure.
    """

    kind: str
    id: str
    status_code: int
    seconds: float
    request_bytes: int | None
    answer_bytes: int
    result: Any = None
    traceback: str | None = None

    @property
    def status(self) -> str:
        """SUCCESS or FAILURE."""
        return "SUCCESS" if self.status_code < 400 else "FAILURE"

    def to_json(self) -> bytes:
        """Return what a callback carries."""
        document = {
            f"{'task' if self.kind == 'task' else 'request'}_id": self.id,
            "kind": self.kind,
            "status": self.status,
            "status_code": self.status_code,
            "result": self.result,
            "traceback": self.traceback,
            "answer_bytes": self.answer_bytes,
        }
        return json.dumps(document).encode()


@dataclass(frozen=True)
class OwnCallback:
    """Where one task wants to be told of, instead of the endpoint's own address."""

    url: str | None = None
    auth: dict[str, Any] | None = None


_NONE = OwnCallback()


class PostHooks:
    """The hooks after the model of one endpoint.

    Args:
        hooks: what is set for the endpoint.
        outbound: makes the way to addresses outside, at the first callback.
        measures: where runs are counted.
        log: the service's logger.
        retry_seconds: the wait after a callback's first failure.
    """

    def __init__(
        self,
        hooks: Sequence[Callback | Logging],
        outbound: "Callable[[], Outbound]",
        measures: Measures,
        log: structlog.typing.FilteringBoundLogger,
        retry_seconds: float,
    ) -> None:
        self._addresses = [hook.url for hook in hooks if isinstance(hook, Callback)]
        self._logs = any(isinstance(hook, Logging) for hook in hooks)
        self._make_outbound = outbound
        self._outbound: Outbound | None = None
        self._measures = measures
        self._log = log
        self._retry_seconds = retry_seconds
        self._running: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return self._logs or bool(self._addresses)

    @property
    def carries_results(self) -> bool:
        """Whether a request's answer is to be kept for them."""
        return bool(self._addresses)

    def start(self, finished: Finished) -> None:
        """Run them without anybody waiting; too many at once are dropped, and counted."""
        if self._addresses and len(self._running) >= _MOST_WAITING:
            self._measures.hook("callback", "dropped")
            self._log.error("too many callbacks wait, one is dropped", id=finished.id)
            return
        task = asyncio.get_running_loop().create_task(self.run(finished))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def run(self, finished: Finished, own: OwnCallback = _NONE) -> None:
        """Run them all; what fails is logged and counted, and that is all."""
        if self._logs:
            self._write(finished)
        addresses = [own.url] if own.url else self._addresses
        await asyncio.gather(*(self._call(url, finished, own.auth) for url in addresses))

    def _write(self, finished: Finished) -> None:
        self._log.info(
            "inference",
            kind=finished.kind,
            id=finished.id,
            status=finished.status,
            status_code=finished.status_code,
            seconds=round(finished.seconds, 4),
            request_bytes=finished.request_bytes,
            answer_bytes=finished.answer_bytes,
        )
        self._measures.hook("logging", "done")

    async def _call(self, url: str, finished: Finished, auth: dict[str, Any] | None) -> None:
        backoff = Backoff(self._retry_seconds, 30)
        problem = ""
        for number in range(_TRIES):
            if number:
                await backoff.wait()
            try:
                problem = await self._post(url, finished, auth)
            except OutboundRefused as error:
                self._measures.hook("callback", "refused")
                self._log.error("a callback isn't allowed", id=finished.id, problem=str(error))
                return
            except OutboundFailed as error:
                problem = str(error)
            except Exception as error:
                problem = type(error).__name__
            if not problem:
                self._measures.hook("callback", "done")
                return
        self._measures.hook("callback", "failed")
        self._log.error("a callback failed", id=finished.id, tries=_TRIES, problem=problem)

    async def _post(self, url: str, finished: Finished, auth: dict[str, Any] | None) -> str:
        given = auth or {}
        kind = given.get("kind")
        if self._outbound is None:
            self._outbound = self._make_outbound()
        status = await self._outbound.post(
            url,
            finished.to_json(),
            {"content-type": "application/json"},
            basic=(given["username"], given["password"]) if kind == "basic" else None,
            certificate=(given["cert"], given["key"]) if kind == "mtls" else None,
        )
        return "" if 200 <= status < 300 else f"status {status}"

    async def close(self) -> None:
        """Give those that run a little more time, then let go."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        if self._outbound is not None:
            await self._outbound.close()
