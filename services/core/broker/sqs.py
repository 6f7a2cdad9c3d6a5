"""Tasks on Amazon SQS: only on queues that were made beforehand, in the region that was given."""

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from kombu.transport import SQS
from kombu.transport.SQS.exceptions import UndefinedQueueException

from .base import BrokerAway, Consuming, DeadLetter, Lease, PublishedTask, TaskQueue
from .celery_app import LeasedChannel, LeasedQoS, Publisher, guarded, worker_settings
from .messages import task_id_of, with_expiry

if TYPE_CHECKING:
    from kombu.message import Message

_WAIT_SECONDS = 5
_BUSY_SECONDS = 0.05
_AT_ONCE = 10
_LOOK_SECONDS = 30
_ERRORS = (BotoCoreError, ClientError, OSError)
_LOST = {"ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"}
_DELIVERIES = "deliveries"
_COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


class _QoS(LeasedQoS, SQS.QoS):
    pass


class Channel(LeasedChannel, SQS.Channel):
    """Uses one client for all, and asks for no queue by name: names are URLs here."""

    QoS = _QoS

    def _update_queue_cache(self, queue_name_prefix: str) -> None:
        """Look for nothing: the right to list queues isn't ours."""

    def canonical_queue_name(self, queue_name: str) -> str:
        """Return the queue's URL."""
        return queue_name

    def _resolve_queue_url(self, queue: str) -> str:
        if urlsplit(queue).scheme not in {"http", "https"}:
            raise UndefinedQueueException(f"{queue!r} isn't the URL of a queue")
        return queue

    def _new_queue(self, queue: str, **_: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._resolve_queue_url(queue)

    def _size(self, queue: str) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return 0  # asked for when a queue is declared, and used by nobody

    def _receive_message(
        self,
        queue: str,
        max_number_of_messages: int = 1,
        wait_time_seconds: int | None = None,
    ) -> Any:
        # With a predefined queue kombu leaves the lease to the queue's own attribute.
        return self.sqs().receive_message(
            QueueUrl=self._resolve_queue_url(queue),
            MaxNumberOfMessages=max_number_of_messages,
            WaitTimeSeconds=wait_time_seconds or self.wait_time_seconds,
            VisibilityTimeout=self.visibility_timeout,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )

    def sqs(self, queue: str | None = None) -> Any:
        """Return the one client of the process."""
        del queue
        return self.transport_options["client"]


class Transport(SQS.Transport):
    """Hands out channels to SQS."""

    Channel = Channel
    polling_interval = _BUSY_SECONDS
    connection_errors = (*SQS.Transport.connection_errors, BotoCoreError, ClientError, OSError)


class SqsBroker:
    """Sends tasks through SQS and settles them there.

    Args:
        region: where all queues are.
        endpoint_url: another address of the service; None for Amazon's own.
    """

    def __init__(self, region: str, endpoint_url: str | None = None) -> None:
        self._region = region
        # Twenty seconds, so that a long poll ends by itself; clients may be used by all threads.
        config = Config(
            connect_timeout=3,
            read_timeout=20,
            retries={"total_max_attempts": 2},
            parameter_validation=True,
        )
        self._client = boto3.client(
            "sqs", region_name=region, endpoint_url=endpoint_url, config=config
        )
        self._dead_queues: dict[str, str] = {}
        self._publisher = Publisher("sqs://", Transport, self._options(), _ERRORS)

    def _options(self) -> dict[str, Any]:
        return {
            "client": self._client,
            "region": self._region,
            "wait_time_seconds": _WAIT_SECONDS,
            "polling_interval": _BUSY_SECONDS,
        }

    def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task; a link that was found dead is made anew once."""
        self._publisher.publish(queue, task)

    def outstanding(self, queue: TaskQueue) -> int:
        """Return how many tasks wait or are worked on."""

        def count() -> int:
            answer = self._client.get_queue_attributes(
                QueueUrl=queue.name, AttributeNames=list(_COUNTS)
            )
            return sum(int(answer["Attributes"][name]) for name in _COUNTS)

        return guarded(_ERRORS, "tasks can't be counted", count)

    def dead_letters(self, queue: TaskQueue, limit: int) -> list[DeadLetter]:
        """Return tasks that were delivered too often, as many as SQS shows of them."""

        def read() -> list[DeadLetter]:
            dead = self._dead_queue(queue.name)
            found = self._received(dead, limit)
            for message in found:
                self._show(dead, message["ReceiptHandle"])
            return [DeadLetter(_task_id(message), _deliveries(message)) for message in found]

        return guarded(_ERRORS, "dead letters can't be read", read)

    def redrive(self, queue: TaskQueue, task_ids: Sequence[str], expires_at: float) -> list[str]:
        """Put dead letters back to be run until ``expires_at``; return the ids that were there."""
        wanted = set(task_ids)

        def move() -> list[str]:
            dead = self._dead_queue(queue.name)
            moved: list[str] = []
            for message in self._received(dead, len(wanted)):
                task_id, handle = _task_id(message), message["ReceiptHandle"]
                if task_id not in wanted:
                    self._show(dead, handle)
                    continue
                body = _with_expiry(message["Body"], expires_at)
                self._client.send_message(QueueUrl=queue.name, MessageBody=body)
                self._client.delete_message(QueueUrl=dead, ReceiptHandle=handle)
                moved.append(task_id)
            return moved

        return guarded(_ERRORS, "dead letters can't be put back", move)

    def _dead_queue(self, url: str) -> str:
        known = self._dead_queues.get(url)
        if known is None:
            answer = self._client.get_queue_attributes(
                QueueUrl=url, AttributeNames=["RedrivePolicy"]
            )
            policy = answer.get("Attributes", {}).get("RedrivePolicy")
            if policy is None:
                raise BrokerAway("the queue has no dead-letter queue")
            name = json.loads(policy)["deadLetterTargetArn"].rsplit(":", 1)[1]
            known = self._dead_queues[url] = f"{url.rsplit('/', 1)[0]}/{name}"
        return known

    def _received(self, url: str, limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < limit:
            answer = self._client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(_AT_ONCE, limit - len(found)),
                VisibilityTimeout=_LOOK_SECONDS,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
                MessageAttributeNames=[_DELIVERIES],
            )
            messages = answer.get("Messages", [])
            if not messages:
                break
            found += messages
        return found

    def _show(self, url: str, handle: str) -> None:
        self._client.change_message_visibility(
            QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
        )

    def settings_for(self, consuming: Consuming) -> dict[str, Any]:
        """Return the settings of the Celery application that takes a queue's tasks."""
        url = consuming.queue.name
        options = {
            **self._options(),
            "predefined_queues": {url: {"url": url, "region": self._region}},
            "visibility_timeout": max(1, round(consuming.lease_seconds)),
        }
        return worker_settings(consuming, "sqs://", Transport, options)

    def check(self) -> None:
        """Find nothing to refuse."""

    def lease_of(self, message: "Message") -> Lease:
        """Return the lease that a delivered message stands for."""
        info = message.delivery_info
        received = info["sqs_message"]
        handle = (info["sqs_queue"], received["ReceiptHandle"], received["Body"])
        task_id = str((message.headers or {}).get("id", ""))
        return Lease(task_id, received["ReceiptHandle"], _receipts(received), handle)

    def extend(self, lease: Lease, seconds: float) -> bool:
        """Keep a task for ``seconds`` from now; return False when it is another's already."""
        return self._set_visibility(lease, "the lease can't be extended", max(1, round(seconds)))

    def acknowledge(self, lease: Lease) -> None:
        """Say that a task is done."""
        url, handle, _ = lease.handle

        def delete() -> None:
            self._client.delete_message(QueueUrl=url, ReceiptHandle=handle)

        self._unless_lost("the task can't be acknowledged", delete)

    def release(self, lease: Lease) -> None:
        """Put a task back at once, for any worker."""
        self._set_visibility(lease, "the task can't be put back", 0)

    def dead_letter(self, lease: Lease) -> None:
        """Move the task to the dead letters.

        The queue's policy alone would move some that no worker has told of: SQS also counts what
        it sent to a worker that was gone.
        """
        url, handle, body = lease.handle
        count = {"DataType": "Number", "StringValue": str(lease.deliveries)}

        def move() -> None:
            self._client.send_message(
                QueueUrl=self._dead_queue(url),
                MessageBody=body,
                MessageAttributes={_DELIVERIES: count},
            )
            self._client.delete_message(QueueUrl=url, ReceiptHandle=handle)

        self._unless_lost("the task can't be moved to the dead letters", move)

    def restore_expired(self, queue: TaskQueue) -> int:
        """Do nothing: SQS shows a message again when its lease ended."""
        del queue
        return 0

    def close(self) -> None:
        """Let go of all connections."""
        self._publisher.close()
        self._client.close()

    def _set_visibility(self, lease: Lease, doing: str, seconds: int) -> bool:
        url, handle, _ = lease.handle

        def change() -> None:
            self._client.change_message_visibility(
                QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=seconds
            )

        return self._unless_lost(doing, change)

    def _unless_lost(self, doing: str, work: Any) -> bool:
        try:
            work()
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "")).rsplit(".", 1)[-1]
            if code in _LOST:
                return False
            raise BrokerAway(f"{doing}: {code}") from error
        except (BotoCoreError, OSError) as error:
            raise BrokerAway(f"{doing}: {type(error).__name__}") from error
        return True


def _receipts(message: dict[str, Any]) -> int:
    return int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1))


def _deliveries(message: dict[str, Any]) -> int:
    """Return how often a dead letter was delivered: as a worker counted, or else the policy."""
    counted = message.get("MessageAttributes", {}).get(_DELIVERIES)
    return int(counted["StringValue"]) if counted else _receipts(message)


def _task_id(message: dict[str, Any]) -> str:
    return task_id_of(_payload(message["Body"]))


def _payload(body: str) -> dict[str, Any]:
    return json.loads(base64.b64decode(body))


def _with_expiry(body: str, expires_at: float) -> str:
    again = with_expiry(_payload(body), expires_at)
    return base64.b64encode(json.dumps(again).encode()).decode()
