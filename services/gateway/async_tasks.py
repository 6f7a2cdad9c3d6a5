"""``/v1/async-tasks``: tasks that are answered later."""

import datetime
import secrets
import time
import uuid
from typing import Any, cast

import msgspec
import structlog
from fastapi import APIRouter, Request, Response

from components.domain.registration import EndpointType
from services.core import keys
from services.core.broker.base import BrokerAway, DeadLetter, PublishedTask, TaskQueue
from services.core.outbound import Outbound, OutboundRefused
from services.core.records import Task
from services.core.task_broker import TaskBroker

from . import call as calls
from .body import Body, BodyBudget
from .detail import DetailRoute, json_response
from .directory import Caller, Directory, Route
from .errors import BadRequest, NotReady, TasksAway, UnknownModel, UnknownTask
from .submission import Submission, read_submission
from .task_records import FINAL, Seen, TaskRecords, TaskStatus, seen
from .task_store import TaskStore

INLINE_BYTES = 64 * 1024
"""A larger payload goes through the bucket: brokers have limits, and memory of their own."""
_TOKEN_BYTES = 32
_LETTERS = 100
_NULL = msgspec.Raw(b"null")


class AsyncTasks:
    """Takes tasks, tells what became of them, and shows those that no worker could carry out."""

    def __init__(
        self,
        *,
        directory: Directory,
        records: TaskRecords,
        store: TaskStore,
        broker: TaskBroker,
        outbound: Outbound,
        budget: BodyBudget,
        max_body_bytes: int,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._directory = directory
        self._records = records
        self._store = store
        self._broker = broker
        self._outbound = outbound
        self._budget = budget
        self._max_body_bytes = max_body_bytes
        self._log = log

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1/async-tasks", route_class=DetailRoute)
        router.add_api_route("", self._post, methods=["POST"])
        router.add_api_route("/dead-letters", self._dead_letters, methods=["GET"])
        router.add_api_route("/dead-letters/redrive", self._redrive, methods=["POST"])
        router.add_api_route("/{task_id}", self._get, methods=["GET"])
        return router

    async def _post(self, request: Request) -> Response:
        caller = self._caller(request)
        route = self._route(request, caller)
        self._store.check()
        body = Body(self._budget)
        try:
            await body.read(request.headers.raw, cast(Any, request.receive), self._max_body_bytes)
            submission = read_submission(body.data)
            await self._check_callback(submission.callback_url)
            task_id = await self._submit(caller.team, route, submission)
        finally:
            body.drop()
        return json_response({"task_id": task_id})

    async def _check_callback(self, url: str | None) -> None:
        if url is None:
            return
        try:
            await self._outbound.check(url)
        except OutboundRefused as error:
            raise BadRequest(f"callback_url: {error}.", param="callback_url") from error

    async def _submit(self, caller: str, route: Route, submission: Submission) -> str:
        """Record a task, then send it: a worker that gets it always finds its record."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        task = _new_task(caller, route, token)
        message: dict[str, Any] = {
            "task_id": task.id,
            "token": token,
            "path": submission.destination_path or route.registration.predict_path,
            "callback_url": submission.callback_url,
            "callback_auth": submission.credentials(),
            "expires_at": task.expires_at.timestamp(),
        }
        payload = submission.content()
        if len(payload) > INLINE_BYTES:
            task.payload_key = await self._store.put_payload(task, payload)
            message["payload_url"] = f"/internal/tasks/{task.id}/payload"
        else:
            message["payload"] = _decoded(payload)
        await self._records.add(task)
        try:
            await self._broker.publish(_queue(route), PublishedTask(task.id, message))
        except BrokerAway as error:
            await self._forget(task)
            raise self._away(error) from error
        self._log.info(
            "task taken",
            task_id=task.id,
            team=caller,
            endpoint=route.name,
            payload_bytes=len(payload),
        )
        return task.id

    async def _forget(self, task: Task) -> None:
        # Whatever reached the queue all the same has no record any more, so workers drop it.
        try:
            await self._records.remove(task.id)
        except TasksAway:
            self._log.warning("a task that wasn't sent keeps its record", task_id=task.id)
        if task.payload_key:
            await self._store.drop(task.payload_key)

    async def _get(self, task_id: str, request: Request) -> Response:
        caller = self._caller(request)
        task = await self._records.find(task_id)
        if task is None or not (caller.admin or caller.team == task.caller):
            raise UnknownTask(f"The task {task_id[:100]!r} does not exist or isn't yours.")
        now = seen(task, datetime.datetime.now(datetime.UTC))
        result = await self._result(task)
        if result is None and now.status in FINAL and task.result_key:
            now = Seen(TaskStatus.UNDEFINED, None, "The task's result isn't kept any more.")
        return json_response(_told(task_id, now, result))

    async def _result(self, task: Task) -> dict[str, msgspec.Raw] | None:
        if not task.result_key:
            return None
        kept = await self._store.get(task.result_key)
        return None if kept is None else msgspec.json.decode(kept, type=dict[str, msgspec.Raw])

    async def _dead_letters(self, request: Request) -> Response:
        route = self._own_route(request)
        letters = await self._letters(route)
        shown = [{"task_id": item.task_id, "deliveries": item.deliveries} for item in letters]
        return json_response({"dead_letters": shown})

    async def _redrive(self, request: Request) -> Response:
        """Send an endpoint's dead letters once more; each gets the time to wait that it had."""
        route = self._own_route(request)
        ids = [item.task_id for item in await self._letters(route)]
        seconds = route.registration.task_expires_seconds
        # Before they are sent: a worker's result for a failed task would come second.
        await self._records.reopen(ids, seconds)
        try:
            sent = await self._broker.redrive(_queue(route), ids, time.time() + seconds)
        except BrokerAway as error:
            raise self._away(error) from error
        self._log.info("dead letters sent again", endpoint=route.name, task_ids=sent)
        return json_response({"redriven": sent})

    async def _letters(self, route: Route) -> list[DeadLetter]:
        try:
            return await self._broker.dead_letters(_queue(route), _LETTERS)
        except BrokerAway as error:
            raise self._away(error) from error

    def _away(self, error: BrokerAway) -> TasksAway:
        self._log.warning("the broker is away", error=str(error))
        return TasksAway("The queue of tasks doesn't answer now; try again soon.")

    def _caller(self, request: Request) -> Caller:
        if not self._directory.loaded:
            raise NotReady("The gateway is starting.")
        return self._directory.caller(calls.api_key(request.headers.raw))

    def _route(self, request: Request, caller: Caller) -> Route:
        name = request.query_params.get("model_endpoint_id", "")
        if not name:
            raise BadRequest("model_endpoint_id: say which endpoint, in the query.")
        route = self._directory.endpoint(name, caller)
        if route.registration.type is not EndpointType.ASYNC:
            raise BadRequest(
                f"The endpoint {name!r} is of type {route.registration.type}; tasks that are"
                " answered later need one of type async."
            )
        return route

    def _own_route(self, request: Request) -> Route:
        caller = self._caller(request)
        route = self._route(request, caller)
        if not (caller.admin or caller.team == route.team):
            raise UnknownModel(f"The endpoint {route.name!r} isn't yours.")
        return route


def _decoded(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:  # such as a number that none can hold
        raise BadRequest(f"args: they can't be read: {error}", param="args") from error


def _queue(route: Route) -> TaskQueue:
    return TaskQueue(route.team, route.name, route.registration.queue)


def _new_task(caller: str, route: Route, token: str) -> Task:
    registration = route.registration
    now = datetime.datetime.now(datetime.UTC)
    expires = now + datetime.timedelta(seconds=registration.task_expires_seconds)
    return Task(
        id=str(uuid.uuid4()),
        endpoint=route.name,
        namespace=route.namespace,
        team=route.team,
        caller=caller,
        status=TaskStatus.PENDING,
        token_hash=keys.key_hash(token.encode()),
        payload_key="",
        result_key="",
        timeout_seconds=registration.request_timeout_seconds,
        expires_at=expires,
        settled_at=expires,
    )


def _told(task_id: str, now: Seen, result: dict[str, msgspec.Raw] | None) -> dict[str, Any]:
    kept = result or {}
    return {
        "task_id": task_id,
        "status": now.status,
        "result": kept.get("result", now.reason),
        "traceback": kept.get("traceback", _NULL),
        "status_code": now.status_code,
    }
