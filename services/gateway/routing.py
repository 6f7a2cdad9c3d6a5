"""Where a request goes: to a worker that we choose, or to the Service, where a mesh chooses."""

from collections.abc import Collection
from typing import Protocol

from services.core.exchange import Exchange
from services.core.pool import Address
from services.core.workers import Target

from .directory import Route
from .worker_pool import Worker, Workers

_SERVICE_PORT = 80


def place_of(route: Route) -> Target:
    """Return what an endpoint's workers are known by."""
    return route.namespace, route.name


class Routing(Protocol):
    """Knows who takes an endpoint's requests."""

    def pick(self, route: Route, tried: Collection[Address]) -> Worker | None:
        """Return who gets a request, or None when nobody is left to try."""
        ...

    def ready(self, route: Route) -> bool:
        """Return whether any worker takes requests."""
        ...

    def free(self, route: Route) -> int:
        """Return how many more requests the workers take, as far as this gateway can know."""
        ...


class ToWorkers:
    """Sends to the ready worker with the fewest outstanding requests."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def pick(self, route: Route, tried: Collection[Address]) -> Worker | None:
        """Return the worker with the fewest outstanding requests that wasn't tried yet."""
        return self._workers.pick(place_of(route), tried)

    def ready(self, route: Route) -> bool:
        """Return whether any worker takes requests."""
        return bool(self._workers.ready(place_of(route)))

    def free(self, route: Route) -> int:
        """Return how many more requests the ready workers take."""
        limit = route.registration.max_concurrency
        workers = self._workers.ready(place_of(route))
        places = (limit - len(worker.exchanges) for worker in workers if not worker.avoided)
        return sum(max(0, count) for count in places)


class ToService:
    """Sends to the endpoint's Service, whose sidecar chooses; whether any is ready we still watch.

    Which worker has a request isn't known then: that one vanished is for the mesh to tell.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._services: dict[Target, Worker] = {}

    def pick(self, route: Route, tried: Collection[Address]) -> Worker | None:
        """Return the Service while a worker is ready; trying again reaches another worker."""
        del tried
        return self._service(route) if self.ready(route) else None

    def ready(self, route: Route) -> bool:
        """Return whether any worker takes requests."""
        return bool(self._workers.ready(place_of(route)))

    def free(self, route: Route) -> int:
        """Return how many more requests the ready workers take."""
        workers = self._workers.ready(place_of(route))
        limit = route.registration.max_concurrency * len(workers)
        return max(0, limit - len(self._open(route)))

    def _open(self, route: Route) -> set[Exchange]:
        return self._service(route).exchanges

    def _service(self, route: Route) -> Worker:
        host = f"{route.registration.service}.{route.namespace}.svc"
        address = Address(host, _SERVICE_PORT)
        service = self._services.get(place_of(route))
        if service is None or service.address != address:
            service = self._services[place_of(route)] = Worker(address)
        return service
