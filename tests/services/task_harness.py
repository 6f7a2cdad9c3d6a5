"""What the tests of asynchronous workers stand on: a small gateway, and workers of a queue."""

import asyncio
import json
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from service_harness import Model, Service, until
from service_platform import forwarder_of

from services.core.broker.base import Broker, PublishedTask, TaskQueue

# Loading Celery takes seconds on a busy machine.
START_SECONDS = 90.0
TOKEN = "token-of-a-task-canary"
TEAM = "red"


class StubGateway:
    """Takes what workers say of tasks; the first result of a task counts."""

    def __init__(self) -> None:
        self.port = 0
        self.started: list[str] = []
        self.results: dict[str, dict[str, Any]] = {}
        self.puts: defaultdict[str, int] = defaultdict(int)
        self.payloads: dict[str, bytes] = {}
        self.callbacks: list[dict[str, Any]] = []
        self.callback_statuses: list[int] = []
        self.peers: set[Any] = set()
        self._runner: web.AppRunner | None = None

    async def start(self) -> "StubGateway":
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/internal/tasks/{id}/started", self._started)
        app.router.add_get("/internal/tasks/{id}/payload", self._payload)
        app.router.add_put("/internal/tasks/{id}/result", self._result)
        app.router.add_post("/callback", self._callback)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reopen(self, task_id: str) -> None:
        """Let a task have another result, as a redrive does."""
        del self.results[task_id]

    def _admit(self, request: web.Request) -> str:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise web.HTTPNotFound
        return request.match_info["id"]

    async def _started(self, request: web.Request) -> web.Response:
        task_id = self._admit(request)
        self.started.append(task_id)
        return web.json_response({}, status=409 if task_id in self.results else 200)

    async def _payload(self, request: web.Request) -> web.Response:
        payload = self.payloads.get(self._admit(request))
        return web.Response(status=404) if payload is None else web.Response(body=payload)

    async def _result(self, request: web.Request) -> web.Response:
        task_id = self._admit(request)
        document = await request.json()
        self.puts[task_id] += 1
        if task_id in self.results:
            return web.json_response({}, status=409)
        self.results[task_id] = document
        return web.json_response({})

    async def _callback(self, request: web.Request) -> web.Response:
        document = await request.json()
        authorization = request.headers.get("authorization")
        self.callbacks.append({**document, "authorization": authorization})
        status = self.callback_statuses.pop(0) if self.callback_statuses else 200
        return web.json_response({}, status=status)


@dataclass
class Tasks:
    """One endpoint's tasks: its queue, its gateway, its model, and its workers."""

    broker: Broker
    queue: TaskQueue
    gateway: StubGateway
    model: Model
    env: dict[str, str]
    process_env: dict[str, str] = field(default_factory=dict)
    workers: list[Service] = field(default_factory=list)

    async def worker(self, *, ready: bool = True, **env: str) -> Service:
        defaults = {
            "MODE": "async",
            "ENDPOINT": self.queue.endpoint,
            "TEAM": TEAM,
            "GATEWAY_URL": self.gateway.url,
            "QUEUE": self.queue.address,
            "MAX_CONCURRENCY": "8",
            "LEASE_SECONDS": "4",
            "CALLBACK_RETRY_SECONDS": "0.05",
            "CALLBACK_ALLOW": "127.0.0.0/8",
        }
        service = forwarder_of(self.model, **{**defaults, **self.env, **env})
        service.plain_env.update(self.process_env)
        self.workers.append(await service.start())
        await until(lambda: service.port or service.exited(), START_SECONDS)
        assert service.port, service.raw
        if ready:
            await until(service.is_ready, START_SECONDS)
        return service

    async def send(self, payload: Any = None, **kwargs: Any) -> str:
        task_id = str(uuid.uuid4())
        message = {
            "task_id": task_id,
            "token": TOKEN,
            "path": "/predict",
            "callback_url": None,
            "callback_auth": None,
            "expires_at": time.time() + 600,
            **({} if payload is None else {"payload": payload}),
            **kwargs,
        }
        task = PublishedTask(task_id, message)
        await asyncio.to_thread(self.broker.publish, self.queue, task)
        return task_id

    async def result(self, task_id: str, seconds: float = 60) -> dict[str, Any]:
        return await until(lambda: self.gateway.results.get(task_id), seconds)

    def asked(self, task_id: str) -> int:
        """How often the model was asked for a task."""
        wanted = (b"x-request-id", task_id.encode())
        return sum(
            wanted in [(name.lower(), value) for name, value in request["headers"]]
            for request in self.model.requests
        )

    async def outstanding(self) -> int:
        return await asyncio.to_thread(self.broker.outstanding, self.queue)

    async def nothing_left(self) -> bool:
        return await self.outstanding() == 0

    async def dead(self) -> list[str]:
        letters = await asyncio.to_thread(self.broker.dead_letters, self.queue, 100)
        return [letter.task_id for letter in letters]

    async def redrive(self, *ids: str) -> list[str]:
        expires = time.time() + 600
        return await asyncio.to_thread(self.broker.redrive, self.queue, list(ids), expires)

    async def close(self) -> None:
        for worker in self.workers:
            await worker.stop()
        await self.gateway.stop()
        await asyncio.to_thread(self.broker.close)


def said(service: Service) -> str:
    """Everything a worker wrote, for what must never be in it."""
    return service.raw + json.dumps(service.lines)
