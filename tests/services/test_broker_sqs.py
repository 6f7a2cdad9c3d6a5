"""The same tasks on SQS, against moto's server."""

import asyncio
import contextlib
import json
import re
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import boto3
import pytest
import pytest_asyncio
from kombu.transport.SQS.exceptions import UndefinedQueueException
from moto.server import ThreadedMotoServer
from service_harness import Model, until
from task_harness import TEAM, StubGateway, Tasks

from services.core.broker.base import Consuming, PublishedTask, TaskQueue
from services.core.broker.sqs import SqsBroker

pytestmark = pytest.mark.asyncio(loop_scope="session")

REGION = "eu-central-1"
MAX_DELIVERIES = 1
MAX_RECEIPTS = MAX_DELIVERIES + 5


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        yield f"http://{host}:{port}"
    server.stop()


class Queues:
    """What Pulumi makes for one endpoint: its queue, and the one for dead letters."""

    def __init__(self, client: Any) -> None:
        self.client = client
        name = f"t{uuid.uuid4().hex[:8]}"
        self.dead = self.client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
        arn = self.client.get_queue_attributes(QueueUrl=self.dead, AttributeNames=["QueueArn"])
        policy = {
            "deadLetterTargetArn": arn["Attributes"]["QueueArn"],
            "maxReceiveCount": MAX_RECEIPTS,
        }
        attributes = {"VisibilityTimeout": "2", "RedrivePolicy": json.dumps(policy)}
        made = self.client.create_queue(QueueName=name, Attributes=attributes)
        self.url: str = made["QueueUrl"]

    def waiting(self) -> str:
        name = "ApproximateNumberOfMessages"
        found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])
        return found["Attributes"][name]


@pytest.fixture
def queues(aws: str) -> Iterator[Queues]:
    with contextlib.closing(boto3.client("sqs", region_name=REGION)) as client:
        yield Queues(client)


@pytest_asyncio.fixture(loop_scope="session")
async def tasks(aws: str, queues: Queues, model: Model) -> AsyncIterator[Tasks]:
    gateway = await StubGateway().start()
    queue = TaskQueue(TEAM, "e", queues.url)
    env = {"BROKER": "sqs", "BROKER_REGION": REGION, "LEASE_SECONDS": "3"}
    it = Tasks(SqsBroker(REGION, aws), queue, gateway, model, env)
    it.process_env = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": aws,
    }
    yield it
    await it.close()


async def test_tasks_have_one_result_each_and_no_queue_is_looked_for(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    send = tasks.broker._client._make_api_call  # type: ignore[attr-defined]

    def note(operation: str, parameters: Any) -> Any:
        asked.append(operation)
        return send(operation, parameters)

    monkeypatch.setattr(tasks.broker._client, "_make_api_call", note)  # type: ignore[attr-defined]
    await tasks.worker()
    ids = [await tasks.send({"n": number}) for number in range(40)]
    await until(lambda: len(tasks.gateway.results) == len(ids), 60)
    await until(tasks.nothing_left, 60)
    assert {tasks.asked(task_id) for task_id in ids} == {1}
    assert set(asked) == {"SendMessage", "GetQueueAttributes"}


async def test_a_task_longer_than_the_queues_timeout_runs_once(tasks: Tasks) -> None:
    worker = await tasks.worker()
    other = await tasks.worker()
    task_id = await tasks.send({"do": "stream", "chunks": 70, "pause": 0.1})
    await tasks.result(task_id)
    await until(tasks.nothing_left)
    assert tasks.asked(task_id) == 1
    assert not worker.said("a lease was lost")
    assert not other.said("a lease was lost")


async def test_sigterm_shows_the_task_again_at_once(tasks: Tasks, queues: Queues) -> None:
    worker = await tasks.worker(DRAIN_SECONDS="0.5", LEASE_SECONDS="600")
    await tasks.send({"do": "hang"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGTERM)
    assert await worker.wait(60) == 0
    assert queues.waiting() == "1"


async def test_a_poison_task_fails_and_goes_to_the_dead_letters(tasks: Tasks) -> None:
    settings = {"MAX_DELIVERIES": str(MAX_DELIVERIES)}
    worker = await tasks.worker(**settings)
    task_id = await tasks.send({"do": "hang"})
    await until(lambda: tasks.model.open == 1)
    worker.signal(signal.SIGKILL)
    await until(lambda: tasks.model.aborted == 1)
    await tasks.worker(**settings)
    result = await tasks.result(task_id)
    assert (result["status"], result["status_code"]) == ("FAILURE", 500)
    told = re.fullmatch(r"dead-lettered after (\d+) deliveries", result["result"])
    assert told
    # SQS may also have counted what it sent to the killed worker's last poll.
    deliveries = int(told[1])
    assert MAX_DELIVERIES < deliveries < MAX_RECEIPTS
    await until(tasks.nothing_left, 30)
    (letter,) = await asyncio.to_thread(tasks.broker.dead_letters, tasks.queue, 1)
    assert (letter.task_id, letter.deliveries) == (task_id, deliveries)
    assert tasks.asked(task_id) == 1
    assert tasks.gateway.puts[task_id] == 1
    tasks.gateway.reopen(task_id)
    tasks.model.release.set()
    assert await tasks.redrive(task_id) == [task_id]
    assert (await tasks.result(task_id))["status"] == "SUCCESS"


async def test_what_the_policy_moved_is_a_dead_letter_too(tasks: Tasks, queues: Queues) -> None:
    task_id = await tasks.send({"n": 1})
    receipts = 0
    while found := queues.client.receive_message(QueueUrl=queues.url).get("Messages"):
        receipts += 1
        handle = found[0]["ReceiptHandle"]
        queues.client.change_message_visibility(
            QueueUrl=queues.url, ReceiptHandle=handle, VisibilityTimeout=0
        )
        await until(lambda: queues.waiting() == "1")
    assert receipts == MAX_RECEIPTS
    assert await tasks.dead() == [task_id]


async def test_only_queues_that_were_made_beforehand_are_used(aws: str, queues: Queues) -> None:
    broker = SqsBroker(REGION, aws)
    queue = TaskQueue(TEAM, "e", queues.url)
    consuming = Consuming(queue, 60, 4, 600, lambda: True)
    settings = broker.settings_for(consuming)
    options = settings["broker_transport_options"]
    assert options["predefined_queues"] == {queues.url: {"url": queues.url, "region": REGION}}
    assert options["region"] == REGION
    assert options["visibility_timeout"] == 60
    assert settings["worker_enable_remote_control"] is False
    with pytest.raises(UndefinedQueueException):
        broker.publish(TaskQueue(TEAM, "e"), PublishedTask("id", {}))
    broker.close()
