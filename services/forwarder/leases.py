"""Keeping tasks invisible to others while they are worked on."""

import threading

import structlog

from services.core.broker.base import Broker, BrokerAway, Lease, TaskQueue

_TIMES_A_LEASE = 3
_STOP_SECONDS = 3


class LeaseKeeper:
    """Extends the leases of all running tasks, from one thread.

    The thread is its own, so that neither a busy model nor a blocked event loop lets a lease end.
    It also puts back the tasks of workers that were killed, where the broker doesn't.

    Args:
        broker: whose leases.
        queue: the endpoint's queue.
        lease_seconds: how long a lease lasts from its last extension.
        log: the service's logger.
    """

    def __init__(
        self,
        broker: Broker,
        queue: TaskQueue,
        lease_seconds: float,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._log = log
        self._held: dict[str, Lease] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._away = False
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    @property
    def held(self) -> int:
        """How many tasks this worker has."""
        return len(self._held)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End: what is still held becomes another worker's when its lease ends."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def take(self, lease: Lease) -> None:
        """Keep a lease from now on."""
        with self._lock:
            self._held[lease.tag] = lease

    def drop(self, lease: Lease) -> None:
        """Keep it no longer."""
        with self._lock:
            self._held.pop(lease.tag, None)

    def forget(self) -> list[Lease]:
        """Keep none any longer, and return those that were kept."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
        return held

    def _run(self) -> None:
        while not self._stopping.wait(self._lease_seconds / _TIMES_A_LEASE):
            try:
                self._round()
            except Exception:
                self._log.exception("leases weren't extended")

    def _round(self) -> None:
        with self._lock:
            leases = list(self._held.values())
        try:
            for lease in leases:
                if not self._broker.extend(lease, self._lease_seconds):
                    self._lost(lease)
            restored = self._broker.restore_expired(self._queue)
        except BrokerAway as error:
            if not self._away:
                self._log.warning("the broker is away", error=str(error), held=len(leases))
            self._away = True
            return
        if restored:
            self._log.warning("tasks of a lost worker are put back", tasks=restored)
        if self._away:
            self._log.info("the broker is back")
        self._away = False

    def _lost(self, lease: Lease) -> None:
        """Go on with the task all the same: the first result counts, whoever's it is."""
        with self._lock:
            held = self._held.get(lease.tag) is lease
        if held:
            self._log.warning("a lease was lost", task_id=lease.task_id)
