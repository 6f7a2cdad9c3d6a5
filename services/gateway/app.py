"""Putting the gateway together, and running it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import structlog

from services.core import channel
from services.core.exchange import Receive, Scope, Send
from services.core.kube import ObjectSource
from services.core.metrics import new_registry
from services.core.pool import Pool
from services.core.records import database
from services.core.server import Lifecycle, Server

from .declared_keys import DeclaredKeys
from .directory import Directory
from .inference import Inference
from .measures import Measures
from .routes import plain_routes
from .settings import GatewaySettings
from .worker_pool import Workers

_INFERENCE = {
    f"{prefix}/{route}": f"/v1/{route}".encode()
    for prefix in ("/v1", "/openai/v1")
    for route in ("chat/completions", "completions", "embeddings")
}


class Gateway:
    """All parts of one gateway process.

    Args:
        settings: the settings.
        slices: where the EndpointSlices come from.
        log: the service's logger.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        slices: ObjectSource,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._slices = slices
        self._log = log
        self.lifecycle = Lifecycle()
        self._registry = new_registry()
        self._engine = database(settings.database_url)
        self._redis = channel.connect(settings.redis_url)
        self._pool = Pool(
            connect_seconds=settings.connect_seconds,
            idle_seconds=settings.keep_connections_seconds,
        )
        self._directory = Directory(self._engine, log)
        measures = Measures(self._registry, self.lifecycle)
        self._workers = Workers(self._pool.drop, measures.workers, log)
        self._keys = DeclaredKeys(settings.keys_dir, self._engine, self._directory, log)
        self._inference = Inference(
            settings=settings,
            directory=self._directory,
            workers=self._workers,
            pool=self._pool,
            measures=measures,
            lifecycle=self.lifecycle,
            log=log,
        )
        self._plain = plain_routes(self._directory, self._registry, self.missing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: inference without a framework between, the rest with one."""
        upstream_path = _INFERENCE.get(scope["path"])
        if upstream_path is not None and scope["method"] == "POST":
            await self._inference(scope, receive, send, upstream_path)
        else:
            await self._plain(scope, receive, cast(Any, send))

    def missing(self) -> list[str]:
        """Return what keeps the gateway from being ready."""
        conditions = {
            "database": self._directory.loaded,
            "endpoint slices": self._workers.synced,
            "declared keys": self._keys.applied,
            "not draining": not self.lifecycle.draining,
        }
        return [name for name, met in conditions.items() if not met]

    async def run(self) -> None:
        """Serve until SIGTERM."""
        news = [channel.ENDPOINTS, channel.KEYS]
        background: list[Coroutine[Any, Any, None]] = [
            self._directory.run(self._settings.refresh_seconds),
            self._keys.run(),
            self._workers.follow(self._slices),
            channel.listen(self._redis, news, self._directory.refresh, self._log),
        ]
        server = Server(self, self._settings, self.lifecycle, self._log)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in background]
            await server.serve()
            for task in tasks:
                task.cancel()
        self._pool.close()
        await self._redis.aclose()
        await self._engine.dispose()
