"""``/internal/tasks``: what the worker of one task may say and ask, with that task's token."""

import hmac
import json
from typing import Any, cast

import msgspec
from fastapi import APIRouter, Request, Response

from services.core import keys
from services.core.records import Task

from . import call as calls
from .body import Body, BodyBudget
from .detail import DetailRoute, json_response
from .errors import AlreadyDone, BadRequest, InvalidKey, UnknownTask
from .task_records import FINAL, TaskRecords, TaskStatus
from .task_store import TaskStore

_NULL = msgspec.Raw(b"null")


class _Result(msgspec.Struct):
    status: str
    status_code: int | None = None
    result: msgspec.Raw = _NULL
    traceback: str | None = None

    def kept(self) -> bytes:
        """Return what is kept: of a success the model's JSON as text, as the wire contract has it.

        That text may hold what only Python takes for JSON, such as NaN.
        """
        text = bytes(self.result).decode()
        success = self.status == TaskStatus.SUCCESS
        result = {"result": text} if success else self.result
        return msgspec.json.encode({"result": result, "traceback": self.traceback})


_result = msgspec.json.Decoder(_Result)


class InternalTasks:
    """Serves workers; a token opens its own task only, and no key of a team opens any."""

    def __init__(
        self,
        *,
        records: TaskRecords,
        store: TaskStore,
        budget: BodyBudget,
        max_result_bytes: int,
    ) -> None:
        self._records = records
        self._store = store
        self._budget = budget
        self._max_result_bytes = max_result_bytes

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/internal/tasks/{task_id}", route_class=DetailRoute)
        router.add_api_route("/started", self._started, methods=["POST"])
        router.add_api_route("/payload", self._payload, methods=["GET"])
        router.add_api_route("/result", self._put_result, methods=["PUT"])
        return router

    async def _started(self, task_id: str, request: Request) -> Response:
        await self._task(task_id, request)
        if not await self._records.started(task_id):
            raise _done(task_id)
        return json_response({})

    async def _payload(self, task_id: str, request: Request) -> Response:
        task = await self._task(task_id, request)
        payload = await self._store.get(task.payload_key) if task.payload_key else None
        if payload is None:
            raise UnknownTask(f"The task {task_id!r} has no payload here.")
        return Response(payload, media_type="application/json")

    async def _put_result(self, task_id: str, request: Request) -> Response:
        task = await self._task(task_id, request)
        if task.status in FINAL:
            raise _done(task_id)
        body = Body(self._budget)
        try:
            await body.read(request.headers.raw, cast(Any, request.receive), self._max_result_bytes)
            result = _read_result(body.data)
            await self._keep(task, result)
        finally:
            body.drop()
        if task.payload_key and result.status == TaskStatus.SUCCESS:
            await self._store.drop(task.payload_key)  # a failed task may be sent once more
        return json_response({})

    async def _keep(self, task: Task, result: _Result) -> None:
        """Write the result, then make it the task's; of two that come at once one is dropped."""
        key = await self._store.put_result(task, result.kept())
        status = TaskStatus(result.status)
        if not await self._records.finish(task.id, status, result.status_code, key):
            await self._store.drop(key)
            raise _done(task.id)

    async def _task(self, task_id: str, request: Request) -> Task:
        token = calls.api_key(request.headers.raw)
        if not token:
            raise InvalidKey("Give the task's token as 'Authorization: Bearer <token>'.")
        task = await self._records.find(task_id)
        known = task.token_hash if task is not None else ""
        if not hmac.compare_digest(keys.key_hash(token), known) or task is None:
            # The same for both: a wrong token doesn't tell which tasks there are.
            raise UnknownTask(f"The task {task_id[:100]!r} does not exist or isn't this token's.")
        return task


def _done(task_id: str) -> AlreadyDone:
    return AlreadyDone(f"The task {task_id!r} has its result already.")


def _read_result(body: bytes) -> _Result:
    try:
        body.decode()
        result = _decoded(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRequest(f"The result isn't JSON of the right form: {error}") from error
    if result.status not in FINAL:
        raise BadRequest(f"status: {result.status[:50]!r} isn't one of {', '.join(FINAL)}.")
    return result


def _decoded(body: bytes) -> _Result:
    try:
        return _result.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Python writes NaN, which isn't JSON; a model's answer isn't lost for it.
        document = json.loads(body)
        text = json.dumps(document.pop("result", None))
        result = msgspec.convert(document, _Result)
        plain = result.status == TaskStatus.SUCCESS
        result.result = msgspec.Raw(text.encode() if plain else msgspec.json.encode(text))
        return result
