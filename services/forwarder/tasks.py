"""One task's way through the worker: checked, asked of the model, its result handed in."""

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import structlog

from services.core.errors import ConnectFailed, OutOfTime, UpstreamBroke
from services.core.server import Lifecycle

from .answers import as_json
from .drain import Drain
from .errors import Invalid
from .gateway_client import GatewayClient, PayloadGone, ResultRefused
from .health import ModelHealth
from .hooks import Finished, OwnCallback, PostHooks
from .measures import Measures
from .model_client import AnswerTooLarge, ModelClient
from .settings import ForwarderSettings
from .validation import Checks

_TRIES = 3
_LOOK_SECONDS = 0.05
EXPIRED = 408


class Verdict(Enum):
    """What is to become of a task's message."""

    ACKNOWLEDGE = "done"
    RELEASE = "released"
    DEAD_LETTER = "dead"


class _PutBack(Exception):  # noqa: N818
    """The worker ends, and the model hasn't answered: another worker's turn."""


class _NothingToDo(Exception):  # noqa: N818
    """The task has its result already, or is nobody's any more."""


@dataclass(frozen=True)
class Task:
    """A delivered task."""

    id: str
    token: str
    path: str
    expires_at: float
    deliveries: int
    payload: bytes | None
    own: OwnCallback

    @classmethod
    def read(cls, kwargs: Mapping[str, Any], deliveries: int, default_path: str) -> "Task":
        """Read what the gateway sent.

        Raises:
            KeyError, TypeError, ValueError: it isn't a task.
        """
        payload = json.dumps(kwargs["payload"]).encode() if "payload" in kwargs else None
        path = str(kwargs.get("path") or default_path)
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
            raise ValueError("the path isn't one")
        return cls(
            id=str(kwargs["task_id"]),
            token=str(kwargs["token"]),
            path=path,
            expires_at=float(kwargs["expires_at"]),
            deliveries=deliveries,
            payload=payload,
            own=OwnCallback(kwargs.get("callback_url"), kwargs.get("callback_auth")),
        )


@dataclass(frozen=True)
class _Outcome:
    status_code: int
    result: Any
    traceback: str | None = None
    request_bytes: int | None = None
    answer_bytes: int = 0
    dead: bool = False

    @property
    def status(self) -> str:
        return "SUCCESS" if self.status_code < 400 else "FAILURE"

    def document(self) -> dict[str, Any]:
        """Return what the gateway is told."""
        return {
            "status": self.status,
            "status_code": self.status_code,
            "result": self.result,
            "traceback": self.traceback,
        }


class TaskRunner:
    """Carries out tasks, as many at once as it is asked to."""

    def __init__(
        self,
        *,
        settings: ForwarderSettings,
        model: ModelClient,
        gateway: GatewayClient,
        health: ModelHealth,
        drain: Drain,
        lifecycle: Lifecycle,
        checks: Checks,
        hooks: PostHooks,
        measures: Measures,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._model = model
        self._gateway = gateway
        self._health = health
        self._drain = drain
        self._lifecycle = lifecycle
        self._checks = checks
        self._hooks = hooks
        self._measures = measures
        self._log = log
        self._again = asyncio.Lock()

    async def run(self, task: Task) -> Verdict:
        """Carry out a task and say what is to become of its message."""
        self._lifecycle.enter()
        self._measures.in_flight.inc()
        started = time.monotonic()
        verdict, outcome = Verdict.RELEASE, None
        try:
            outcome = await self._outcome(task)
            await self._hand_in(task, outcome, time.monotonic() - started)
            verdict = Verdict.DEAD_LETTER if outcome.dead else Verdict.ACKNOWLEDGE
        except _NothingToDo:
            verdict = Verdict.ACKNOWLEDGE
        except _PutBack:
            pass
        finally:
            self._lifecycle.leave()
            self._measures.in_flight.dec()
            self._note(task, verdict, outcome, time.monotonic() - started)
        return verdict

    async def close(self) -> None:
        """Let go of the gateway."""
        await self._gateway.close()

    def _note(self, task: Task, verdict: Verdict, outcome: _Outcome | None, seconds: float) -> None:
        self._measures.task(verdict.value)
        if outcome is not None:
            self._measures.request(outcome.status_code, seconds, None)
        self._log.info(
            "task",
            task_id=task.id,
            path=task.path,
            verdict=verdict.value,
            deliveries=task.deliveries,
            status=outcome.status_code if outcome else None,
            seconds=round(seconds, 4),
            request_bytes=outcome.request_bytes if outcome else None,
            answer_bytes=outcome.answer_bytes if outcome else None,
        )

    async def _outcome(self, task: Task) -> _Outcome:
        if task.deliveries > self._settings.max_deliveries:
            text = f"dead-lettered after {task.deliveries} deliveries"
            return _Outcome(500, text, traceback=text, dead=True)
        if task.expires_at <= time.time():
            return _Outcome(EXPIRED, "The task expired before a worker took it.")
        if not await self._gateway.started(task.id, task.token):
            raise _NothingToDo
        payload = task.payload
        if payload is None:
            try:
                payload = await self._gateway.payload(task.id, task.token)
            except PayloadGone as error:
                return _failure(500, error)
        try:
            await self._checks.check(payload)
        except Invalid as error:
            return _Outcome(error.status, str(error), request_bytes=len(payload))
        return await self._ask(task, payload)

    async def _ask(self, task: Task, payload: bytes) -> _Outcome:
        """Ask the model, again if it went away, until the time for the task is over."""
        deadline = time.monotonic() + self._settings.request_timeout_seconds
        try:
            return await self._post(task, payload, deadline)
        except (ConnectFailed, UpstreamBroke) as error:
            problem = error
        # Tasks that ran when the model ended come again one by one: the one that ends it then ends
        # it alone, and none of the others is counted out with it.
        async with self._again:
            for _ in range(_TRIES - 1):
                if not await self._back(deadline):
                    break
                try:
                    return await self._post(task, payload, deadline)
                except (ConnectFailed, UpstreamBroke) as error:
                    problem = error
        # Whether the task ends the model or the model ended by itself: people may look at the task
        # among the dead letters, and have it run again.
        status = 503 if isinstance(problem, ConnectFailed) else 502
        return replace(_failure(status, problem, len(payload)), dead=True)

    async def _post(self, task: Task, payload: bytes, deadline: float) -> _Outcome:
        """Ask the model once.

        Raises:
            ConnectFailed, UpstreamBroke: it went away, and the worker goes on.
        """
        try:
            answer = await self._model.post(
                task.path, payload, task.id, deadline - time.monotonic()
            )
        except OutOfTime as error:
            return _failure(504, error, len(payload))
        except AnswerTooLarge as error:
            return _failure(502, error, len(payload))
        except (ConnectFailed, UpstreamBroke) as error:
            if self._drain.active:
                raise _PutBack from error
            raise
        self._health.heard()
        return _Outcome(
            answer.status,
            as_json(answer.body),
            request_bytes=len(payload),
            answer_bytes=len(answer.body),
        )

    async def _back(self, deadline: float) -> bool:
        """Wait until the model answers its health route; return False when no time is left."""
        seen = self._health.checks
        while self._health.checks == seen or not self._health.answers:
            if self._drain.active:
                raise _PutBack
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    async def _hand_in(self, task: Task, outcome: _Outcome, seconds: float) -> None:
        try:
            await self._gateway.finish(task.id, task.token, outcome.document())
        except ResultRefused as error:
            self._log.error("a result is refused", task_id=task.id, problem=str(error))
            outcome = _failure(502, error)
            # Without any result its sender would wait for ever.
            with contextlib.suppress(ResultRefused):
                await self._gateway.finish(task.id, task.token, outcome.document())
        finished = Finished(
            kind="task",
            id=task.id,
            status_code=outcome.status_code,
            seconds=seconds,
            request_bytes=outcome.request_bytes,
            answer_bytes=outcome.answer_bytes,
            result=outcome.result,
            traceback=outcome.traceback,
        )
        await self._hooks.run(finished, task.own)


def _failure(status: int, error: Exception, request_bytes: int | None = None) -> _Outcome:
    text = f"The model failed: {error}."
    return _Outcome(status, text, traceback=text, request_bytes=request_bytes)
