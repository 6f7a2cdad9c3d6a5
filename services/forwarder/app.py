"""Putting the forwarder together, and running it."""

import asyncio

import structlog

from services.core.exchange import Receive, Scope, Send
from services.core.metrics import CONTENT_TYPE, exposition, new_registry
from services.core.pool import Pool
from services.core.relay import answer
from services.core.server import Lifecycle, Server

from .drain import Drain
from .forward import Forward
from .health import ModelHealth
from .measures import Measures
from .settings import ForwarderSettings


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
        measures = Measures(self._registry, settings.endpoint, settings.max_concurrency)
        self._forward = Forward(
            settings=settings,
            pool=pool,
            health=self._health,
            drain=self._drain,
            lifecycle=self.lifecycle,
            measures=measures,
            log=log,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; all paths but five are the model's."""
        match scope["path"]:
            case "/healthz":
                await answer(send, 200, b"{}")
            case "/readyz":
                ready = self._health.healthy and not self._drain.active
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

    async def run(self) -> None:
        """Serve until SIGTERM and the last request."""
        server = Server(self, self._settings, self.lifecycle, self._log, listen_while_draining=True)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._health.run(self._settings.health_every_seconds)),
                group.create_task(self._start_linger()),
            ]
            await server.serve()
            for task in background:
                task.cancel()

    async def _start_linger(self) -> None:
        await self.lifecycle.stopping.wait()
        self._drain.begin()
