"""Tasks on Azure Service Bus: only on queues that were made beforehand; locks are kept renewed."""

import datetime
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import AzureError
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from kombu.transport import azureservicebus, virtual

from .base import Consuming, DeadLetter, Lease, PublishedTask, TaskQueue
from .celery_app import LeasedChannel, LeasedQoS, Publisher, guarded, worker_settings
from .messages import task_id_of, with_expiry

if TYPE_CHECKING:
    from kombu.message import Message

_WAIT_SECONDS = 5
_BUSY_SECONDS = 0.05
_LONGEST_LOCK_SECONDS = 300
_LOOK_SECONDS = 5
# A result may have to wait for the gateway after the task's own time is over.
_EXTRA_RENEWAL_SECONDS = 3600
_ERRORS = (AzureError, OSError)


class Channel(LeasedChannel, azureservicebus.Channel):
    """Makes no queue and asks for no properties of one: that takes the right to manage them."""

    QoS = LeasedQoS

    def entity_name(self, name: str, table: dict[int, int] | None = None) -> str:
        """Return the queue's name as it is."""
        del table
        return name

    def _new_queue(self, queue: str, **_: Any) -> azureservicebus.SendReceive:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._add_queue_to_cache(queue)

    def _size(self, queue: str) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return 0  # asked for when a queue is declared, and used by nobody

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        found = super()._get(queue, timeout)
        # The tag that travels with a message is the same at each delivery; the lock isn't.
        message = found["properties"]["delivery_info"]["azure_message"]
        found["properties"]["delivery_tag"] = str(message.lock_token)
        return found


class Transport(azureservicebus.Transport):
    """Hands out channels to Service Bus."""

    Channel = Channel
    polling_interval = _BUSY_SECONDS
    connection_errors = (*virtual.Transport.connection_errors, AzureError, OSError)


class ServiceBusBroker:
    """Sends tasks through Service Bus and settles them there.

    Args:
        url: ``azureservicebus://DefaultAzureCredential@namespace.servicebus.windows.net``.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        options = self._options()
        self._publisher = Publisher(url, Transport, options, _ERRORS)
        self._made: Any = None

    def _options(self) -> dict[str, Any]:
        return {
            "wait_time_seconds": _WAIT_SECONDS,
            "polling_interval": _BUSY_SECONDS,
            "uamqp_keep_alive_interval": 30,
            "retry_total": 3,
            "retry_backoff_factor": 0.8,
            "retry_backoff_max": 120,
        }

    @property
    def _client(self) -> Any:
        """The client for what Celery doesn't do: made at the first use, and only once."""
        if self._made is None:
            from azure.servicebus import ServiceBusClient  # noqa: PLC0415

            namespace, credential = azureservicebus.Transport.parse_uri(self._url)
            if isinstance(credential, str):
                policy, key = credential.split(":", 1)
                self._made = ServiceBusClient.from_connection_string(
                    f"Endpoint=sb://{namespace};SharedAccessKeyName={policy};SharedAccessKey={key}"
                )
            else:
                self._made = ServiceBusClient(namespace, credential)
        return self._made

    def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task; a link that was found dead is made anew once."""
        self._publisher.publish(queue, task)

    def outstanding(self, queue: TaskQueue) -> int:
        """Return how many tasks wait or are worked on, as far as one look shows them."""

        def count() -> int:
            with self._client.get_queue_receiver(queue.name) as receiver:
                return len(receiver.peek_messages(max_message_count=250))

        return guarded(_ERRORS, "tasks can't be counted", count)

    def dead_letters(self, queue: TaskQueue, limit: int) -> list[DeadLetter]:
        """Return tasks that were delivered too often, the oldest first."""

        def read() -> list[DeadLetter]:
            with self._dead_receiver(queue) as receiver:
                found = receiver.peek_messages(max_message_count=limit)
            return [DeadLetter(_task_id(message), _deliveries(message)) for message in found]

        return guarded(_ERRORS, "dead letters can't be read", read)

    def redrive(self, queue: TaskQueue, task_ids: Sequence[str], expires_at: float) -> list[str]:
        """Put dead letters back to be run until ``expires_at``; return the ids that were there."""
        wanted = set(task_ids)

        def move() -> list[str]:
            moved: list[str] = []
            with (
                self._dead_receiver(queue) as receiver,
                self._client.get_queue_sender(queue.name) as sender,
            ):
                found = receiver.receive_messages(
                    max_message_count=len(wanted), max_wait_time=_LOOK_SECONDS
                )
                for message in found:
                    if _task_id(message) not in wanted:
                        receiver.abandon_message(message)
                        continue
                    again = json.dumps(with_expiry(_payload(message), expires_at))
                    sender.send_messages(ServiceBusMessage(again))
                    receiver.complete_message(message)
                    moved.append(_task_id(message))
            return moved

        return guarded(_ERRORS, "dead letters can't be put back", move)

    def _dead_receiver(self, queue: TaskQueue) -> Any:
        return self._client.get_queue_receiver(queue.name, sub_queue=ServiceBusSubQueue.DEAD_LETTER)

    def settings_for(self, consuming: Consuming) -> dict[str, Any]:
        """Return the settings of the Celery application that takes a queue's tasks."""
        options = {
            **self._options(),
            # Without renewal a task longer than its lock, five minutes at most, runs twice.
            "use_lock_renewal": True,
            "max_lock_renewal_duration": consuming.limit_seconds + _EXTRA_RENEWAL_SECONDS,
            "peek_lock_seconds": min(_LONGEST_LOCK_SECONDS, int(consuming.lease_seconds)),
        }
        return worker_settings(consuming, self._url, Transport, options)

    def check(self) -> None:
        """Find nothing to refuse."""

    def lease_of(self, message: "Message") -> Lease:
        """Return the lease that a delivered message stands for."""
        received = message.delivery_info["azure_message"]
        task_id = str((message.headers or {}).get("id", ""))
        handle = (message.channel, message.delivery_info["azure_queue_name"], received)
        return Lease(task_id, str(message.delivery_tag), _deliveries(received), handle)

    def extend(self, lease: Lease, seconds: float) -> bool:
        """Say whether the lock still holds: the library renews it by itself."""
        del seconds
        until = lease.handle[2].locked_until_utc
        return until is None or until > datetime.datetime.now(datetime.UTC)

    def acknowledge(self, lease: Lease) -> None:
        """Say that a task is done."""
        self._settle(lease, "the task can't be acknowledged", "complete_message")

    def release(self, lease: Lease) -> None:
        """Put a task back at once, for any worker."""
        self._settle(lease, "the task can't be put back", "abandon_message")

    def dead_letter(self, lease: Lease) -> None:
        """Move a task to the dead letters."""
        doing = "the task can't be moved to the dead letters"
        self._settle(lease, doing, "dead_letter_message", reason="delivered too often")

    def _settle(self, lease: Lease, doing: str, method: str, **details: Any) -> None:
        channel, queue, received = lease.handle

        def settle() -> None:
            receiver = channel._get_asb_receiver(queue).receiver  # noqa: SLF001
            getattr(receiver, method)(received, **details)

        guarded(_ERRORS, doing, settle)

    def restore_expired(self, queue: TaskQueue) -> int:
        """Do nothing: Service Bus shows a message again when its lock ended."""
        del queue
        return 0

    def close(self) -> None:
        """Let go of all connections."""
        self._publisher.close()
        if self._made is not None:
            self._made.close()


def _deliveries(message: ServiceBusReceivedMessage) -> int:
    return int(message.delivery_count or 0) + 1


def _payload(message: ServiceBusReceivedMessage) -> dict[str, Any]:
    body = message.body
    return json.loads(body if isinstance(body, bytes) else b"".join(body))


def _task_id(message: ServiceBusReceivedMessage) -> str:
    return task_id_of(_payload(message))
