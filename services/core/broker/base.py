"""What a broker of tasks is, and what travels through it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from components.domain.keys import TASK_QUEUE, task_prefix
from services.core.errors import ServiceError

if TYPE_CHECKING:
    from kombu.message import Message

TASK_NAME = "llm_platform.predict"
"""The one Celery task there is."""


class BrokerAway(ServiceError):  # noqa: N818  (names say what happened)
    """The broker can't be reached, or refused what we asked."""


class BrokerUnfit(ServiceError):  # noqa: N818
    """The broker can never do what tasks need; the message says what to change."""


@dataclass(frozen=True)
class TaskQueue:
    """The queue of one endpoint.

    Args:
        team: the endpoint's team.
        endpoint: its name.
        address: the queue's URL on SQS, its name on Service Bus; empty on Redis.
    """

    team: str
    endpoint: str
    address: str = ""

    @property
    def prefix(self) -> str:
        """What every key of the queue begins with on Redis."""
        return task_prefix(self.team, self.endpoint)

    @property
    def name(self) -> str:
        """The queue's name to Celery."""
        return self.address or self.prefix + TASK_QUEUE


@dataclass(frozen=True)
class PublishedTask:
    """A task to send."""

    id: str
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class DeadLetter:
    """A task that was delivered too often."""

    task_id: str
    deliveries: int


@dataclass(frozen=True)
class Lease:
    """One delivery of a task: while its lease lasts, no other worker gets the task.

    Args:
        task_id: the task's id.
        tag: the delivery's own name, unlike any other's.
        deliveries: how often the task was delivered, this time counted.
        handle: what the broker needs to act on it.
    """

    task_id: str
    tag: str
    deliveries: int
    handle: Any = None


@dataclass(frozen=True)
class Consuming:
    """How a worker takes tasks.

    Args:
        queue: from where.
        lease_seconds: how long a task stays invisible after its last extension.
        concurrency: how many tasks run at once; as many are taken, never more.
        limit_seconds: how long a task may run in all.
        may_take: asked before each task; False stops taking until it is True again.
    """

    queue: TaskQueue
    lease_seconds: float
    concurrency: int
    limit_seconds: float
    may_take: Callable[[], bool]


class Broker(Protocol):
    """Sends tasks, and settles what was delivered.

    Every method may be called from any thread. Those that need the broker raise ``BrokerAway``.
    """

    def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task; a link that was found dead is made anew once."""
        ...

    def outstanding(self, queue: TaskQueue) -> int:
        """Return how many tasks wait or are worked on."""
        ...

    def dead_letters(self, queue: TaskQueue, limit: int) -> list[DeadLetter]:
        """Return tasks that were delivered too often, the oldest first."""
        ...

    def redrive(self, queue: TaskQueue, task_ids: Sequence[str], expires_at: float) -> list[str]:
        """Put dead letters back to be run until ``expires_at``; return the ids that were there."""
        ...

    def settings_for(self, consuming: Consuming) -> dict[str, Any]:
        """Return the settings of the Celery application that takes a queue's tasks."""
        ...

    def check(self) -> None:
        """Refuse a broker that can't do what tasks need.

        Raises:
            BrokerUnfit: it never can.
        """
        ...

    def lease_of(self, message: "Message") -> Lease:
        """Return the lease that a delivered message stands for."""
        ...

    def extend(self, lease: Lease, seconds: float) -> bool:
        """Keep a task for ``seconds`` from now; return False when it is another's already."""
        ...

    def acknowledge(self, lease: Lease) -> None:
        """Say that a task is done."""
        ...

    def release(self, lease: Lease) -> None:
        """Put a task back at once, for any worker."""
        ...

    def dead_letter(self, lease: Lease) -> None:
        """Move a task to the dead letters."""
        ...

    def restore_expired(self, queue: TaskQueue) -> int:
        """Put back tasks whose leases ended, where the broker doesn't; return how many."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...
