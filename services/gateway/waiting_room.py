"""Requests that wait for a worker: in the order they came, woken by changes, never by polling.

Whoever waits was not refused, so it is not refused later for finding every worker busy: it keeps
its place until a worker takes it, its time is up, or its client is gone.
"""

import asyncio
import heapq
import itertools
import random
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from services.core.exchange import Exchange
from services.core.workers import Target

from .directory import Route
from .measures import Measures
from .routing import Routing, place_of
from .trip import Passage


class Outcome(Enum):
    """What came of offering a request to the workers."""

    TAKEN = "taken"
    BUSY = "busy"
    """At least one worker is there, and has as many requests as it takes."""
    NONE = "none"
    """No worker is there to take any."""


@dataclass(order=True, slots=True)
class _Waiter:
    number: int
    turn: asyncio.Future[None] = field(compare=False)


class _Line:
    """Those who wait for one endpoint."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.busy = False
        self.timer: asyncio.TimerHandle | None = None
        self._waiters: list[_Waiter] = []

    def __bool__(self) -> bool:
        while self._waiters and self._waiters[0].turn.done():
            heapq.heappop(self._waiters)
        return bool(self._waiters)

    def join(self, waiter: _Waiter) -> None:
        heapq.heappush(self._waiters, waiter)

    def wake(self, count: int) -> None:
        """Let the first ones try."""
        while count > 0 and self:
            heapq.heappop(self._waiters).turn.set_result(None)
            count -= 1

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class WaitingRoom:
    """Holds requests until a worker may take them.

    Args:
        routing: who takes requests.
        measures: told how long each has waited.
        retry_seconds: how often the first in a line tries again while workers are there: places
            at them are also freed by other gateways, which nobody tells us.
    """

    def __init__(self, routing: Routing, measures: Measures, retry_seconds: float) -> None:
        self._routing = routing
        self._measures = measures
        self._retry_seconds = retry_seconds
        self._lines: dict[Target, _Line] = {}
        self._numbers = itertools.count(1)
        self._closed = False
        self.waiting: Counter[Target] = Counter()
        """How many requests of each endpoint are held here, and at no worker."""

    def outlook(self, passage: Passage) -> Outcome | None:
        """Return what a new request has to expect, or None when there is no line before it."""
        line = self._lines.get(passage.place)
        if not line:
            return None
        if line.busy and self._routing.ready(line.route):
            return Outcome.BUSY
        return Outcome.NONE if self._seconds(passage, Outcome.NONE) > 0 else None

    async def wait(self, passage: Passage, outcome: Outcome) -> bool:
        """Wait for the turn to try; return False when there is no time left for it.

        Raises:
            Ended: the client is gone, or the request's own time is up.
        """
        left = self._seconds(passage, outcome)
        line = self._line(passage.plan.route)
        line.busy = outcome is Outcome.BUSY
        if left <= 0 or self._closed:
            self._forget_empty(passage.place)
            return False
        self._enter(passage, outcome)
        waiter = _Waiter(passage.number, asyncio.get_running_loop().create_future())
        line.join(waiter)
        self._arm(line)
        return await self._turn(passage, waiter, left) and not self._closed

    async def _turn(self, passage: Passage, waiter: _Waiter, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        began = loop.time()
        exchange: Exchange = passage.exchange
        try:
            return await exchange.pause(waiter.turn, seconds)
        finally:
            waiter.turn.cancel()
            passage.trip.held_seconds += loop.time() - began
            self._forget_empty(passage.place)

    def _seconds(self, passage: Passage, outcome: Outcome) -> float:
        plan = passage.plan
        limit = plan.patience_seconds
        if passage.promised or outcome is Outcome.NONE:
            limit = max(limit, float(plan.route.registration.hold_seconds))
        return limit - passage.trip.held_seconds

    def _enter(self, passage: Passage, outcome: Outcome) -> None:
        if passage.number == 0:
            passage.number = next(self._numbers)
        if outcome is Outcome.NONE:
            passage.promised = True
        if not passage.waiting:
            passage.waiting = True
            self.waiting[passage.place] += 1

    def at_worker(self, passage: Passage) -> None:
        """Take note that a worker has the request now, and counts it."""
        if passage.waiting:
            passage.waiting = False
            self.waiting[passage.place] -= 1
            if not self.waiting[passage.place]:
                del self.waiting[passage.place]

    def over(self, passage: Passage) -> None:
        """Take note that the request is over."""
        self.at_worker(passage)
        if passage.number:
            self._measures.held(passage.place[1], passage.trip.held_seconds)

    def freed(self, place: Target) -> None:
        """Let the next one try: a worker has finished a request."""
        line = self._lines.get(place)
        if line is not None:
            line.wake(1)
            self._forget_empty(place)

    def changed(self, place: Target) -> None:
        """Let as many try as the endpoint's workers, which have changed, can take."""
        line = self._lines.get(place)
        if line is None:
            return
        line.wake(self._routing.free(line.route))
        if line:  # those who stay know that all places are taken
            line.busy = self._routing.ready(line.route)
            self._arm(line)
        self._forget_empty(place)

    def close(self) -> None:
        """Let nobody wait any longer, at the end of the process."""
        self._closed = True
        for line in list(self._lines.values()):
            while line:
                line.wake(1)
            line.stop_timer()
        self._lines.clear()

    def _line(self, route: Route) -> _Line:
        line = self._lines.setdefault(place_of(route), _Line(route))
        line.route = route
        return line

    def _forget_empty(self, place: Target) -> None:
        line = self._lines.get(place)
        if line is not None and not line:
            line.stop_timer()
            del self._lines[place]

    def _arm(self, line: _Line) -> None:
        if line.timer is None and self._routing.ready(line.route):
            delay = self._retry_seconds * random.uniform(0.5, 1.5)  # noqa: S311
            line.timer = asyncio.get_running_loop().call_later(delay, self._try_again, line)

    def _try_again(self, line: _Line) -> None:
        line.timer = None
        if self._routing.ready(line.route):
            line.wake(1)
        if line:
            self._arm(line)
        self._forget_empty(place_of(line.route))
