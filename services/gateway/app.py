"""Putting the gateway together, and running it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import structlog

from services.core import channel
from services.core.database import database
from services.core.exchange import Receive, Scope, Send
from services.core.kube import ObjectSource
from services.core.metrics import new_registry
from services.core.server import Lifecycle, Server

from .body import BodyBudget
from .declared_keys import DeclaredKeys
from .directory import Directory
from .model_routes import ModelRoutes
from .routes import plain_routes
from .settings import GatewaySettings
from .tasks_part import TasksPart


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
        self._log = log
        self.lifecycle = Lifecycle()
        self._registry = new_registry()
        self._engine = database(settings)
        self._redis = channel.connect(settings.redis_url)
        self._directory = Directory(self._engine, log)
        self._budget = BodyBudget(settings.max_held_bytes)
        self._keys = DeclaredKeys(settings.keys_dir, self._engine, self._directory, log)
        self._models = ModelRoutes(
            settings=settings,
            slices=slices,
            directory=self._directory,
            redis=self._redis,
            budget=self._budget,
            registry=self._registry,
            lifecycle=self.lifecycle,
            log=log,
        )
        self._tasks = TasksPart(settings, self._engine, self._directory, self._budget, log)
        self._plain = plain_routes(self._directory, self._registry, self.missing)
        self._tasks.add_routes(self._plain)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: those for models without a framework between, the rest with one."""
        api = self._models.api(scope)
        if api is not None:
            await self._models.serve(scope, receive, send, api)
        else:
            await self._plain(scope, receive, cast(Any, send))

    def missing(self) -> list[str]:
        """Return what keeps the gateway from being ready."""
        conditions = {
            "database": self._directory.loaded,
            "endpoint slices": self._models.workers.synced,
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
            *self._models.background(),
            self._tasks.run(),
            channel.listen(self._redis, news, self._directory.refresh, self._log),
        ]
        server = Server(self, self._settings, self.lifecycle, self._log)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in background]
            await server.serve()
            for task in tasks:
                task.cancel()
        self._models.close()
        self._tasks.close()
        await self._redis.aclose()
        await self._engine.dispose()
