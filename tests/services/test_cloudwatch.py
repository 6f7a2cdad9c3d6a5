import asyncio
import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import structlog
from botocore.exceptions import EndpointConnectionError
from moto.server import ThreadedMotoServer
from service_harness import Service, free_port, until
from service_platform import Platform, gateway_of

from components.domain.registration import Registration
from services.gateway.cloudwatch import CloudWatch
from services.gateway.demand import Demand
from services.gateway.directory import Route

pytestmark = pytest.mark.asyncio(loop_scope="session")

AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-west-1",
}


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", free_port())
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def cloudwatch(aws: str) -> Iterator[Any]:
    client = boto3.client(
        "cloudwatch",
        endpoint_url=aws,
        region_name="eu-west-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    with contextlib.closing(client):
        yield client


def sums(client: Any, endpoint: str) -> list[float]:
    """Return what was published of an endpoint, period by period."""
    now = datetime.datetime.now(datetime.UTC)
    found = client.get_metric_statistics(
        Namespace="Mine",
        MetricName="RequestConcurrency",
        Dimensions=[
            {"Name": "Namespace", "Value": "team-red"},
            {"Name": "Endpoint", "Value": endpoint},
        ],
        StartTime=now - datetime.timedelta(minutes=10),
        EndTime=now + datetime.timedelta(minutes=1),
        Period=1,
        Statistics=["Sum"],
    )["Datapoints"]
    return [point["Sum"] for point in sorted(found, key=lambda point: point["Timestamp"])]


async def test_the_gateway_publishes_what_is_open_at_it(
    quick: Platform, aws: str, cloudwatch: Any
) -> None:
    args = (quick.postgres, quick.database, quick.redis, quick.kube, quick.keys_dir)
    env = {"CLOUDWATCH_NAMESPACE": "Mine", "CLOUDWATCH_PERIOD_SECONDS": "1"}
    gateway = gateway_of(*args, **env)
    gateway._env |= {**AWS, "AWS_ENDPOINT_URL": aws}
    shared, quick.gateway = quick.gateway, gateway
    idle = f"{quick.endpoint}-idle"
    try:
        await _publishes(quick, gateway, cloudwatch, idle)
    finally:
        await gateway.stop()
        quick.gateway = shared


async def _publishes(platform: Platform, gateway: Service, client: Any, idle: str) -> None:
    await gateway.start()
    await gateway.ready()
    ready = await platform.new_forwarder(platform.model)
    await platform.add(idle, {ready.port: True})
    await platform.add(platform.endpoint, {}, min_workers=0, hold_seconds=60)
    asked = [asyncio.create_task(platform.post(do="hold")) for _ in range(3)]
    await platform.held(3)
    await until(lambda: round(max([0, *sums(client, platform.endpoint)]), 3) == 3, 30)
    platform.set_workers(platform.endpoint, {ready.port: True})
    await until(lambda: platform.model.open == 3)
    before = len(sums(client, platform.endpoint))
    await until(lambda: len(sums(client, platform.endpoint)) > before + 1, 30)
    assert round(sums(client, platform.endpoint)[-1], 3) == 3
    platform.model.release.set()
    assert {(await task).status for task in asked} == {200}
    await until(lambda: sums(client, platform.endpoint)[-1] == 0, 30)
    assert set(sums(client, idle)) == {0}


class Away:
    """CloudWatch as it is when it isn't there, at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.taken: list[dict[str, Any]] = []

    def put_metric_data(self, **arguments: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise EndpointConnectionError(endpoint_url="https://monitoring")
        self.taken.append(arguments)


async def test_what_could_not_be_published_is_sent_later_with_its_own_time() -> None:
    away = Away(failures=2)
    publisher = CloudWatch(
        lambda: away,
        structlog.get_logger(),
        namespace="Mine",
        period_seconds=1,
        known=lambda: [("team-red", "m")],
    )
    demand = Demand(lambda route: None)
    document = {
        "name": "m",
        "type": "sync",
        "service": "m",
        "runtime": "stub",
        "image": "stub@sha256:0",
        "min_workers": 1,
        "max_workers": 1,
        "per_worker": 1,
        "max_concurrency": 2,
    }
    demand.enter(Route("m", "red", "team-red", 0, Registration.from_document(document)))
    task = asyncio.create_task(publisher.run(demand))
    await until(lambda: len(away.taken) >= 4, 30)
    task.cancel()
    times = [sent["MetricData"][0]["Timestamp"].timestamp() for sent in away.taken[:4]]
    assert times == [times[0] + number for number in range(4)]
    values = [sent["MetricData"][0]["Value"] for sent in away.taken[1:4]]
    assert [round(value, 3) for value in values] == [1, 1, 1]
