"""Concurrency for CloudWatch, where an endpoint's scaling reads it instead of Prometheus.

Each gateway gives one value of each endpoint for each whole period: the mean number of its
requests that were open here. So the sum over a period, as the statistic ``Sum`` makes it, is the
endpoint's concurrency, however many gateways there are.
"""

import asyncio
import contextlib
import datetime
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import boto3
import structlog
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from components.domain.scaling_source import CLOUDWATCH_DIMENSIONS, CLOUDWATCH_METRIC
from services.core.backoff import Backoff
from services.core.workers import Target

from .demand import Demand

_BATCH = 500
_KEPT_PERIODS = 10
_CALL_SECONDS = 10
_FINE, _MINUTE = 1, 60


class Client(Protocol):
    """What is used of boto3's client."""

    def put_metric_data(self, **arguments: Any) -> Any:
        """Send data points."""
        ...


def client() -> Client:
    """Return a client with the pod's own identity and region."""
    limits = Config(
        connect_timeout=_CALL_SECONDS,
        read_timeout=_CALL_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    made: Any = boto3.client("cloudwatch", config=limits)
    return made


class CloudWatch:
    """Publishes every endpoint's concurrency.

    Args:
        make_client: makes the client, in the thread that uses it.
        namespace: CloudWatch's namespace for the metric.
        period_seconds: the length of a period.
        known: the endpoints to tell of, also when nobody asks for them.
        log: where failures are told.
    """

    def __init__(
        self,
        make_client: Callable[[], Client],
        log: structlog.typing.FilteringBoundLogger,
        *,
        namespace: str,
        period_seconds: int,
        known: Callable[[], Collection[Target]],
    ) -> None:
        self._make_client = make_client
        self._client: Client | None = None
        self._log = log
        self._namespace = namespace
        self._period_seconds = period_seconds
        self._known = known
        self._told_until = 0.0
        self._unsent: deque[list[dict[str, Any]]] = deque(maxlen=_KEPT_PERIODS)

    async def run(self, demand: Demand) -> None:
        """Publish after each period until cancelled."""
        async with asyncio.TaskGroup() as group:
            ready = asyncio.Event()
            group.create_task(self._send_all(ready))
            while True:
                began = await self._period()
                averages = demand.averages(self._known())
                self._unsent.append(self._data(averages, began))
                ready.set()

    async def _period(self) -> datetime.datetime:
        """Wait for the end of the running period, by the clock; return when it began."""
        now = datetime.datetime.now(datetime.UTC).timestamp()
        # Woken a moment too early, the same period would be told twice.
        began = max(now - now % self._period_seconds, self._told_until)
        self._told_until = began + self._period_seconds
        await asyncio.sleep(self._told_until - now)
        return datetime.datetime.fromtimestamp(began, datetime.UTC)

    def _data(
        self, averages: Mapping[Target, float], when: datetime.datetime
    ) -> list[dict[str, Any]]:
        resolution = _FINE if self._period_seconds < _MINUTE else _MINUTE
        return [
            {
                "MetricName": CLOUDWATCH_METRIC,
                "Dimensions": [
                    {"Name": name, "Value": value}
                    for name, value in zip(CLOUDWATCH_DIMENSIONS, place, strict=True)
                ],
                "Timestamp": when,
                "Value": value,
                "Unit": "Count",
                "StorageResolution": resolution,
            }
            for place, value in averages.items()
        ]

    async def _send_all(self, ready: asyncio.Event) -> None:
        """Send what is there, again and again while CloudWatch is away."""
        backoff = Backoff(first_seconds=1, limit_seconds=self._period_seconds)
        while True:
            await ready.wait()
            ready.clear()
            while self._unsent:
                data = self._unsent[0]
                try:
                    await asyncio.to_thread(self._send, data)
                except (BotoCoreError, ClientError, OSError) as error:
                    self._log.warning("concurrency can't be published", error=str(error))
                    await backoff.wait()
                    continue
                backoff.reset()
                with contextlib.suppress(ValueError):  # may have become too old meanwhile
                    self._unsent.remove(data)

    def _send(self, data: list[dict[str, Any]]) -> None:
        if self._client is None:
            self._client = self._make_client()
        for start in range(0, len(data), _BATCH):
            self._client.put_metric_data(
                Namespace=self._namespace, MetricData=data[start : start + _BATCH]
            )
