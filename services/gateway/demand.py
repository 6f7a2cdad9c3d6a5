"""How many requests of each endpoint are open at this gateway: held, or at a worker."""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from services.core.workers import Target

from .directory import Route
from .routing import place_of


class Listener(Protocol):
    """Whoever wants to know that an endpoint is asked for."""

    def __call__(self, route: Route) -> None:
        """Take note of a new request."""
        ...


class _Open:
    """The open requests of one endpoint, and their integral over time."""

    __slots__ = ("changed", "count", "request_seconds")

    def __init__(self, now: float) -> None:
        self.count = 0
        self.request_seconds = 0.0
        self.changed = now

    def advance(self, now: float) -> None:
        self.request_seconds += self.count * (now - self.changed)
        self.changed = now


class Demand:
    """Counts open requests.

    Args:
        on_request: told of each new request.
    """

    def __init__(self, on_request: Listener) -> None:
        self._on_request = on_request
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._open: dict[Target, _Open] = {}
        self._since = self._clock()

    def enter(self, route: Route) -> None:
        """Count a request in."""
        place = place_of(route)
        now = self._clock()
        entry = self._open.get(place)
        if entry is None:
            entry = self._open[place] = _Open(now)
        entry.advance(now)
        entry.count += 1
        self._on_request(route)

    def leave(self, route: Route) -> None:
        """Count a request out."""
        entry = self._open[place_of(route)]
        entry.advance(self._clock())
        entry.count -= 1

    def open(self, place: Target) -> int:
        """Return how many requests of an endpoint are open now."""
        entry = self._open.get(place)
        return entry.count if entry else 0

    def averages(self, places: Collection[Target]) -> dict[Target, float]:
        """Return the mean number of open requests since the last call; 0 where there was none."""
        now = self._clock()
        seconds = max(now - self._since, 1e-9)
        self._since = now
        figures = dict.fromkeys(places, 0.0)
        for place, entry in list(self._open.items()):
            entry.advance(now)
            if place in figures or entry.request_seconds:
                figures[place] = entry.request_seconds / seconds
            entry.request_seconds = 0.0
            if entry.count == 0:
                del self._open[place]
        return figures
