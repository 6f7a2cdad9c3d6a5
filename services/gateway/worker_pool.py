"""Which worker gets a request: the ready one with the fewest outstanding."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import structlog

from services.core.errors import WorkerVanished
from services.core.exchange import Exchange
from services.core.kube import ObjectSource
from services.core.pool import Address
from services.core.workers import Target, WorkerSet, workers_of

_AVOIDED_SECONDS = 2.0


class Worker:
    """One replica, and the exchanges that are at it."""

    __slots__ = ("address", "avoided_until", "exchanges", "last_used")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.exchanges: set[Exchange] = set()
        self.last_used = 0
        self.avoided_until = 0.0

    def avoid(self) -> None:
        """Give it nothing for a moment: it said that it is ending, which the slices will tell.

        At its very end it closes connections, also those with a request just sent on them, of
        which nobody knows then whether it was begun.
        """
        self.avoided_until = asyncio.get_running_loop().time() + _AVOIDED_SECONDS

    @property
    def avoided(self) -> bool:
        """Whether it is given nothing now."""
        return self.avoided_until > 0 and self.avoided_until > asyncio.get_running_loop().time()


class Workers:
    """All workers of all endpoints, as the EndpointSlices tell them.

    Args:
        on_unready: told of each worker that takes no more requests, to close idle connections.
        on_count: told how many workers an endpoint has that take requests, None for no workers.
        log: where vanished workers are told.
    """

    def __init__(
        self,
        on_unready: Callable[[Address], None],
        on_count: Callable[[str, int | None], None],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._on_unready = on_unready
        self._on_count = on_count
        self._log = log
        self._sets: dict[Target, WorkerSet] = {}
        self._ready: dict[Target, list[Worker]] = {}
        self._known: dict[tuple[Target, Address], Worker] = {}
        self._turn = 0
        self._watchers: list[Callable[[Target], None]] = []
        self.synced = False

    def watch(self, on_change: Callable[[Target], None]) -> None:
        """Tell ``on_change`` of each endpoint whose workers have changed."""
        self._watchers.append(on_change)

    def ready(self, target: Target) -> Sequence[Worker]:
        """Return the workers that take requests."""
        return self._ready.get(target, ())

    def pick(self, target: Target, tried: Iterable[Address]) -> Worker | None:
        """Return the ready worker with the fewest outstanding requests that wasn't tried yet."""
        best: Worker | None = None
        for worker in self._ready.get(target, ()):
            if worker.address in tried or worker.avoided:
                continue
            rank = (len(worker.exchanges), worker.last_used)
            if best is None or rank < (len(best.exchanges), best.last_used):
                best = worker
        if best is not None:
            self._turn += 1
            best.last_used = self._turn  # among equals the one that waited longest
        return best

    async def follow(self, source: ObjectSource) -> None:
        """Follow the slices until cancelled."""
        async for objects in source.snapshots():
            self.update(workers_of(objects.values()))

    def update(self, sets: dict[Target, WorkerSet]) -> None:
        """Take over the workers that exist now; whoever waits on one that is gone is told."""
        before, self._sets = self._sets, sets
        self.synced = True
        for target in before.keys() | sets.keys():
            if before.get(target) != sets.get(target):
                self._update(target, sets.get(target, WorkerSet(frozenset(), frozenset())))

    def _update(self, target: Target, now: WorkerSet) -> None:
        for known_target, address in [key for key in self._known if key[0] == target]:
            if address not in now.known:
                self._vanished(known_target, self._known.pop((known_target, address)))
        for address in now.known:
            self._known.setdefault((target, address), Worker(address))
        for worker in self._ready.get(target, ()):
            if worker.address not in now.ready:
                self._on_unready(worker.address)
                worker.avoided_until = 0.0  # the slices know; should it come back, it is welcome
        self._ready[target] = [
            self._known[target, address] for address in sorted(now.ready, key=str)
        ]
        if not now.known:
            del self._ready[target]
        self._on_count(target[1], len(now.ready) if now.known else None)
        for on_change in self._watchers:
            on_change(target)

    def _vanished(self, target: Target, worker: Worker) -> None:
        # A killed pod's network sends nothing any more, so nobody else would end these.
        if worker.exchanges:
            self._log.warning(
                "worker vanished",
                endpoint=target[1],
                worker=str(worker.address),
                requests=len(worker.exchanges),
            )
        for exchange in list(worker.exchanges):
            exchange.end(WorkerVanished("the worker was removed while it worked on the request"))
