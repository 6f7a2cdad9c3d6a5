"""Everything between a request for a model and its worker, put together."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis

from services.core.exchange import Receive, Scope, Send
from services.core.kube import ObjectSource
from services.core.pool import Pool
from services.core.server import Lifecycle
from services.core.workers import Target

from . import cloudwatch
from .activation import Activation
from .body import BodyBudget
from .carrier import Carrier
from .demand import Demand
from .directory import Directory
from .inference import Api, Inference
from .measures import Measures, Waiting
from .openai_api import OpenAiApi
from .routing import Routing, ToService, ToWorkers, place_of
from .settings import GatewaySettings
from .task_api import TaskApi
from .waiting_room import WaitingRoom
from .worker_pool import Workers

_OPENAI = ("chat/completions", "completions", "embeddings")
_OPENAI_PREFIXES = ("/v1", "/openai/v1")
_LAST_WORD_SECONDS = 2.0


class ModelRoutes:
    """The routes that end at a worker.

    Args:
        settings: the settings.
        slices: where the EndpointSlices come from.
        directory: keys and endpoints.
        redis: where sleeping endpoints are woken.
        budget: what all requests may hold at once.
        registry: gets the metrics.
        lifecycle: counts the open requests, and knows of SIGTERM.
        log: the service's logger.
    """

    def __init__(
        self,
        *,
        settings: GatewaySettings,
        slices: ObjectSource,
        directory: Directory,
        redis: Redis,
        budget: BodyBudget,
        registry: CollectorRegistry,
        lifecycle: Lifecycle,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._slices = slices
        self._directory = directory
        self._lifecycle = lifecycle
        self._log = log
        measures = Measures(registry, lifecycle)
        self._pool = Pool(
            connect_seconds=settings.connect_seconds,
            idle_seconds=settings.keep_connections_seconds,
        )
        self.workers = Workers(self._pool.drop, measures.workers, log)
        routing = _routing(settings, self.workers)
        self._room = WaitingRoom(routing, measures, settings.retry_seconds)
        self.workers.watch(self._room.changed)
        registry.register(Waiting(self._waiting))
        self._activation = Activation(
            redis,
            log,
            expiry_seconds=settings.activation_expiry_seconds,
            renew_seconds=settings.activation_renew_seconds,
        )
        self._demand = Demand(self._activation.wanted)
        carrier = Carrier(
            routing=routing,
            room=self._room,
            pool=self._pool,
            measures=measures,
            max_tries=settings.max_tries,
            log=log,
        )
        self._inference = Inference(
            settings=settings,
            directory=directory,
            carrier=carrier,
            demand=self._demand,
            budget=budget,
            measures=measures,
            lifecycle=lifecycle,
            log=log,
        )
        self._apis = _apis(directory, settings, budget)

    def api(self, scope: Scope) -> Api | None:
        """Return how a request is to be read, None when it isn't one for a model."""
        api = self._apis.get(scope["path"])
        if scope["method"] != "POST" and isinstance(api, OpenAiApi):
            return None
        return api

    async def serve(self, scope: Scope, receive: Receive, send: Send, api: Api) -> None:
        """Carry one request out."""
        await self._inference(scope, receive, send, api)

    def background(self) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run beside the server."""
        work: list[Coroutine[Any, Any, None]] = [
            self.workers.follow(self._slices),
            self._activation.run(self._demand),
            self._last_word(),
        ]
        if self._settings.cloudwatch_namespace:
            publisher = cloudwatch.CloudWatch(
                cloudwatch.client,
                self._log,
                namespace=self._settings.cloudwatch_namespace,
                period_seconds=self._settings.cloudwatch_period_seconds,
                known=lambda: [place_of(route) for route in self._directory.served()],
            )
            work.append(publisher.run(self._demand))
        return work

    def close(self) -> None:
        """Close the connections to workers."""
        self._pool.close()

    def _waiting(self) -> Mapping[Target, int]:
        known = dict.fromkeys(map(place_of, self._directory.served()), 0)
        return {**known, **self._room.waiting}

    async def _last_word(self) -> None:
        """Refuse whoever still waits when the drain's time is up, so that no client is cut off.

        Until then a stopping gateway goes on holding: a worker may come, and the client would
        have to begin again elsewhere.
        """
        await self._lifecycle.stopping.wait()
        limit = self._settings.linger_seconds + self._settings.drain_seconds
        await asyncio.sleep(max(0.0, limit - _LAST_WORD_SECONDS))
        self._room.close()


def _routing(settings: GatewaySettings, workers: Workers) -> Routing:
    match settings.routing:
        case "service":
            return ToService(workers)
        case "workers":
            return ToWorkers(workers)


def _apis(directory: Directory, settings: GatewaySettings, budget: BodyBudget) -> dict[str, Api]:
    apis: dict[str, Api] = {
        f"{prefix}/{route}": OpenAiApi(directory, settings, f"/v1/{route}".encode())
        for prefix in _OPENAI_PREFIXES
        for route in _OPENAI
    }
    for name, streaming in {"sync": False, "streaming": True}.items():
        apis[f"/v1/{name}-tasks"] = TaskApi(directory, settings, budget, streaming=streaming)
    return apis
