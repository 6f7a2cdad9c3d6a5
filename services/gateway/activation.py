"""Waking endpoints that sleep: a list in Redis that isn't empty while anybody wants them.

The autoscaler starts the first worker when the list has an element, and may stop the last one some
time after it has none. So the list is filled at once, kept while any request is held or at a
worker, and left to expire; it never depends on a pod, nor on what measures pods.
"""

import asyncio
from collections.abc import Iterable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from components.domain.keys import activation_key
from services.core.backoff import Backoff
from services.core.workers import Target

from .demand import Demand
from .directory import Route
from .routing import place_of

_LONGEST_BACKOFF_SECONDS = 5


class Activation:
    """Keeps the lists of all endpoints that are asked for, from one task.

    Args:
        redis: where the lists are.
        expiry_seconds: how long a list outlives its last renewal.
        renew_seconds: how often it is renewed while requests are open.
        log: where outages of Redis are told.
    """

    def __init__(
        self,
        redis: Redis,
        log: structlog.typing.FilteringBoundLogger,
        *,
        expiry_seconds: int,
        renew_seconds: float,
    ) -> None:
        self._redis = redis
        self._expiry_seconds = expiry_seconds
        self._renew_seconds = renew_seconds
        self._log = log
        self._pushed: dict[Target, float] = {}
        self._due: set[Target] = set()
        self._asked = asyncio.Event()

    def wanted(self, route: Route) -> None:
        """Take note of a request; costs nothing when the list was filled a moment ago."""
        if route.registration.min_workers > 0:
            return
        place = place_of(route)
        if place not in self._pushed:
            self._due.add(place)
            self._asked.set()

    async def run(self, demand: Demand) -> None:
        """Fill and renew lists until cancelled; an outage of Redis is waited out."""
        backoff = Backoff(limit_seconds=_LONGEST_BACKOFF_SECONDS)
        while True:
            await self._until_due(demand)
            try:
                await self._push(self._due)
            except (RedisError, OSError, TimeoutError) as error:
                self._log.warning(
                    "endpoints can't be woken", error=str(error), endpoints=len(self._due)
                )
                await backoff.wait()
                # After an outage only those are woken that somebody still waits for.
                self._due = {place for place in self._due if demand.open(place)}
                continue
            backoff.reset()

    async def _until_due(self, demand: Demand) -> None:
        """Wait for a request for a sleeping endpoint, or until an open one needs a renewal."""
        loop = asyncio.get_running_loop()
        while True:
            oldest = loop.time() - self._renew_seconds
            for place in [it for it, pushed in self._pushed.items() if pushed <= oldest]:
                del self._pushed[place]  # a new request pushes again
                if demand.open(place):
                    self._due.add(place)
            if self._due:
                return
            self._asked.clear()
            next_renewal = min(self._pushed.values(), default=None)
            until = None if next_renewal is None else next_renewal + self._renew_seconds
            try:
                async with asyncio.timeout_at(until):
                    await self._asked.wait()
            except TimeoutError:
                continue

    async def _push(self, places: Iterable[Target]) -> None:
        """Make each list hold one element and live for the expiry; all of it or nothing."""
        chosen = list(places)
        async with self._redis.pipeline(transaction=True) as pipeline:
            for place in chosen:
                key = activation_key(*place)
                pipeline.lpush(key, "1")
                pipeline.ltrim(key, 0, 0)
                pipeline.expire(key, self._expiry_seconds)
            await pipeline.execute()
        now = asyncio.get_running_loop().time()
        self._pushed.update(dict.fromkeys(chosen, now))
        self._due.difference_update(chosen)
