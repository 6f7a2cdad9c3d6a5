"""The Celery applications that send tasks and take them."""

from collections.abc import Callable
from typing import Any, TypeVar

from celery import Celery
from kombu.entity import Queue
from kombu.exceptions import OperationalError
from kombu.transport import virtual

from .base import TASK_NAME, BrokerAway, Consuming, PublishedTask, TaskQueue

_KEPT_LINKS = 10
_ONCE_MORE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
Done = TypeVar("Done")

_COMMON: dict[str, Any] = {
    "task_serializer": "json",
    "accept_content": ["json"],
    "result_backend": None,
    "task_ignore_result": True,
    "task_store_errors_even_if_ignored": False,
    "enable_utc": True,
    "broker_pool_limit": _KEPT_LINKS,
    "broker_connection_timeout": 5,
}

_WORKER: dict[str, Any] = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_create_missing_queues": False,
    "worker_prefetch_multiplier": 1,
    "worker_enable_prefetch_count_reduction": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_disable_rate_limits": True,
    "worker_detect_quorum_queues": False,
    # Queues for remote control and events would have to be made, read and paid for.
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "event_queue_exclusive": False,
    "broker_heartbeat": 0,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_channel_error_retry": True,
}


class LeasedQoS(virtual.QoS):
    """Takes no more than allowed; what was delivered is settled by the broker, not by Celery."""

    # Putting back by itself, a closed channel would have running tasks run twice.
    restore_at_shutdown = False

    def can_consume(self) -> bool:
        """Return whether another task may be taken now."""
        may_take = self.channel.connection.client.transport_options.get("may_take")
        return (may_take is None or may_take()) and bool(super().can_consume())


class LeasedChannel(virtual.Channel):
    """Of a channel: acknowledging only frees the place for the next task."""

    do_restore = False

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Free the place."""
        del multiple
        self.qos.ack(delivery_tag)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Free the place; an unsettled task comes back when its lease ends."""
        del requeue
        self.qos.ack(delivery_tag)


class Publisher:
    """Sends tasks with a Celery application.

    Args:
        url: where the broker is.
        transport: the transport's class.
        options: the transport's options.
        errors: what the broker's library raises when it can't send.
    """

    def __init__(
        self,
        url: str,
        transport: type[virtual.Transport],
        options: dict[str, Any],
        errors: tuple[type[BaseException], ...],
    ) -> None:
        self._errors = (*errors, OperationalError)  # kombu's own word for no connection
        self._app = Celery("llm-platform", set_as_current=False)
        self._app.conf.update(
            _COMMON, broker_url=url, broker_transport=transport, broker_transport_options=options
        )

    def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task; a link that was found dead is made anew once.

        Raises:
            BrokerAway: it may or may not have been sent.
        """
        try:
            self._send(queue, task)
        except self._errors as error:
            raise BrokerAway(f"the task can't be sent: {type(error).__name__}") from error

    def _send(self, queue: TaskQueue, task: PublishedTask) -> None:
        message = self._app.amqp.create_task_message(
            task.id,
            TASK_NAME,
            (),
            dict(task.kwargs),
            ignore_result=True,
            # Celery would put what was asked into a header, for people to read.
            argsrepr="()",
            kwargsrepr="{}",
        )
        with self._app.producer_or_acquire() as producer:
            producer.publish(
                message.body,
                exchange="",  # straight to the queue: no exchange and no binding is made
                routing_key=queue.name,
                headers=message.headers,
                serializer="json",
                retry=True,
                retry_policy=_ONCE_MORE,
                **message.properties,
            )

    def close(self) -> None:
        """Close all links."""
        self._app.close()


def worker_settings(
    consuming: Consuming,
    url: str,
    transport: type[virtual.Transport],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return a Celery worker's settings: JSON only, settled late, one task for each place."""
    name = consuming.queue.name
    return {
        **_COMMON,
        **_WORKER,
        "broker_url": url,
        "broker_transport": transport,
        "broker_transport_options": {**options, "may_take": consuming.may_take},
        "task_queues": [Queue(name, exchange="", routing_key=name)],
        "task_default_queue": name,
        "worker_concurrency": consuming.concurrency,
    }


def guarded(errors: tuple[type[BaseException], ...], doing: str, work: Callable[[], Done]) -> Done:
    """Do something with the broker; what its library raises becomes ``BrokerAway``."""
    try:
        return work()
    except errors as error:
        raise BrokerAway(f"{doing}: {type(error).__name__}") from error
