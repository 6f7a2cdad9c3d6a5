"""Putting the forwarder together, and running it."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from services.core.exchange import Receive, Scope, Send
from services.core.metrics import CONTENT_TYPE, exposition, new_registry
from services.core.pool import Pool
from services.core.relay import answer
from services.core.server import Lifecycle, Server

from .drain import Drain
from .forward import Forward
from .health import ModelHealth
from .hooks import PostHooks
from .measures import Measures
from .settings import ForwarderSettings
from .validation import Checks

if TYPE_CHECKING:
    from services.core.outbound import Outbound

    from .async_worker import AsyncWorker


class Forwarder:
    """All parts of one forwarder process."""

    def __init__(
        self, settings: ForwarderSettings, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._settings = settings
        self._log = log
        self.lifecycle = Lifecycle()
        self._registry = new_registry()
        self._drain = Drain(
            self.lifecycle,
            linger_seconds=settings.linger_seconds,
            limit_seconds=settings.drain_seconds,
        )
        # The model is beside us, so a connection costs nothing; a kept one may just be closing.
        pool = Pool(connect_seconds=settings.connect_seconds, idle_seconds=0)
        self._health = ModelHealth(
            pool,
            settings.address,
            settings.health_path,
            log,
            timeout_seconds=settings.health_timeout_seconds,
            failures=settings.health_failures,
            dead_seconds=settings.model_dead_seconds,
        )
        self._pool = pool
        self._measures = Measures(self._registry, settings.endpoint, settings.max_concurrency)
        hooks = settings.hooks_to_run
        self._checks = Checks(hooks.pre, self._measures)
        self._hooks = PostHooks(
            hooks.post, self._outbound, self._measures, log, settings.callback_retry_seconds
        )
        self._forward = Forward(
            settings=settings,
            pool=pool,
            health=self._health,
            drain=self._drain,
            lifecycle=self.lifecycle,
            checks=self._checks,
            hooks=self._hooks,
            measures=self._measures,
            log=log,
        )
        self._worker: AsyncWorker | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; all paths but five are the model's."""
        match scope["path"]:
            case "/healthz":
                await answer(send, 200, b"{}")
            case "/readyz":
                ready = self._takes_work() and (self._worker is None or self._worker.connected)
                await answer(send, 200 if ready else 503, b"{}")
            case "/livez/model":
                await answer(send, 503 if self._health.dead else 200, b"{}")
            case "/metrics":
                await self._metrics(send)
            case "/drain":
                self._health.restarted()
                drained = await self._drain.hook()
                self._log.info("drained for the model's stop", drained=drained)
                await answer(send, 200, b"{}")
            case _:
                await self._forward(scope, receive, send)

    async def _metrics(self, send: Send) -> None:
        body = exposition(self._registry)
        headers = [
            (b"content-type", CONTENT_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _takes_work(self) -> bool:
        return self._health.healthy and not self._drain.active

    async def run(self) -> None:
        """Serve until SIGTERM and the last request or task."""
        server = Server(self, self._settings, self.lifecycle, self._log, listen_while_draining=True)
        if self._settings.mode == "async":
            self._worker = self._new_worker()
            self._worker.start()
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._health.run(self._settings.health_every_seconds)),
                group.create_task(self._start_linger()),
            ]
            await server.serve()
            if self._worker is not None:
                await self._worker.stop()
            await self._hooks.close()
            for task in background:
                task.cancel()

    def _outbound(self) -> "Outbound":
        from services.core.outbound import Outbound  # noqa: PLC0415  (most workers need none)

        return Outbound(self._settings.allowed_callbacks, self._settings.callback_seconds)

    def _new_worker(self) -> "AsyncWorker":
        # Celery is slow to import, and only workers of tasks need it.
        from .async_worker import AsyncWorker  # noqa: PLC0415
        from .gateway_client import GatewayClient  # noqa: PLC0415
        from .model_client import ModelClient  # noqa: PLC0415
        from .tasks import TaskRunner  # noqa: PLC0415

        settings = self._settings
        runner = TaskRunner(
            settings=settings,
            model=ModelClient(self._pool, settings.address, settings.max_result_bytes),
            gateway=GatewayClient(settings.gateway_url, self._log),
            health=self._health,
            drain=self._drain,
            lifecycle=self.lifecycle,
            checks=self._checks,
            hooks=self._hooks,
            measures=self._measures,
            log=self._log,
        )
        return AsyncWorker(settings, runner, self._takes_work, self._log)

    async def _start_linger(self) -> None:
        await self.lifecycle.stopping.wait()
        self._drain.begin()
