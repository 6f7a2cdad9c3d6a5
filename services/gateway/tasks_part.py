"""Asynchronous tasks in the gateway, put together: their routes, and what they keep open."""

import structlog
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine

from services.core.broker.settings import broker_settings
from services.core.bucket import Bucket
from services.core.outbound import Outbound
from services.core.task_broker import TaskBroker

from .async_tasks import AsyncTasks
from .body import BodyBudget
from .directory import Directory
from .internal_tasks import InternalTasks
from .settings import GatewaySettings
from .task_records import TaskRecords
from .task_store import TaskStore


class TasksPart:
    """Everything of a gateway that concerns asynchronous tasks.

    Args:
        settings: the settings.
        engine: the database.
        directory: keys and endpoints.
        budget: what all requests may hold at once.
        log: the service's logger.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        engine: AsyncEngine,
        directory: Directory,
        budget: BodyBudget,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        records = TaskRecords(engine, log)
        self._store = TaskStore(Bucket(settings.bucket) if settings.bucket else None, log)
        self._broker = TaskBroker(
            broker_settings(
                settings.broker,
                url=settings.broker_url or settings.redis_url,
                region=settings.broker_region,
            )
        )
        self._public = AsyncTasks(
            directory=directory,
            records=records,
            store=self._store,
            broker=self._broker,
            outbound=Outbound(filter(None, map(str.strip, settings.callback_allow.split(",")))),
            budget=budget,
            max_body_bytes=settings.max_body_bytes,
            log=log,
        )
        self._internal = InternalTasks(
            records=records,
            store=self._store,
            budget=budget,
            max_result_bytes=settings.max_result_bytes,
        )

    def add_routes(self, app: FastAPI) -> None:
        """Add the routes to the gateway's plain ones."""
        app.include_router(self._public.router())
        app.include_router(self._internal.router())

    async def run(self) -> None:
        """Load what is slow to load, then watch over the bucket until cancelled."""
        await self._broker.load()
        await self._store.run()

    def close(self) -> None:
        """Let go of the bucket and the broker."""
        self._store.close()
        self._broker.close()
