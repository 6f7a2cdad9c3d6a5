"""How much work asynchronous endpoints have: for the autoscaler, and as a metric."""

import asyncio
import json
from collections.abc import Iterable, Iterator

import structlog

from components.domain import labels, metrics
from components.domain.registration import EndpointType
from services.core.broker.base import BrokerAway, TaskQueue
from services.core.exchange import Send
from services.core.kube import Object
from services.core.relay import answer
from services.core.task_broker import TaskBroker
from services.core.workers import Target

from .cluster import Cluster
from .errors import Unfit
from .measures import Measures
from .registrations import Claim, claim_of, teams_of

PATH = "/scaling/"
_ANSWER_SECONDS = 5


class Scaling:
    """Counts tasks that wait or run; what isn't known is an error and never a zero.

    It needs neither the database nor the lead: an autoscaler must get its answer while those are
    away, and from whichever instance it reaches.
    """

    def __init__(
        self,
        cluster: Cluster,
        broker: TaskBroker,
        measures: Measures,
        queue_prefix: str,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._cluster = cluster
        self._broker = broker
        self._measures = measures
        self._queue_prefix = queue_prefix
        self._log = log

    async def answer(self, path: str, send: Send) -> None:
        """Answer ``/scaling/<namespace>/<endpoint>``."""
        namespace, _, endpoint = path.removeprefix(PATH).partition("/")
        if not self._cluster.synced:
            await _say(send, 503, {"detail": "this cacher doesn't know the cluster yet"})
            return
        queue = self._queue(namespace, endpoint)
        if queue is None:
            await _say(send, 404, {"detail": "no asynchronous endpoint is registered so"})
            return
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                outstanding = await self._broker.outstanding(queue)
        except (BrokerAway, TimeoutError) as error:
            self._log.warning("tasks can't be counted", endpoint=endpoint, error=str(error))
            await _say(send, 503, {"detail": "the broker can't be asked"})
        else:
            await _say(send, 200, {"outstanding": outstanding})

    async def run(self) -> None:
        """Measure every queue, as often as it is read, until cancelled."""
        while True:
            if self._cluster.synced:
                self._measures.outstanding(await self._count())
            await asyncio.sleep(metrics.SCRAPE_SECONDS)

    async def _count(self) -> dict[Target, int]:
        counts: dict[Target, int] = {}
        known = (self._cluster.config_maps or {}).values()
        for target, queue in dict(self._queues(known)).items():
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    counts[target] = await self._broker.outstanding(queue)
            except (BrokerAway, TimeoutError):
                break  # it is the same broker for all; what isn't told isn't taken for zero
        return counts

    def _queue(self, namespace: str, endpoint: str) -> TaskQueue | None:
        maps = (self._cluster.config_maps or {}).items()
        named = (
            item
            for key, item in maps
            if key[0] == namespace and item["metadata"]["labels"].get(labels.ENDPOINT) == endpoint
        )
        found = (queue for target, queue in self._queues(named) if target[1] == endpoint)
        return next(found, None)

    def _queues(self, config_maps: Iterable[Object]) -> Iterator[tuple[Target, TaskQueue]]:
        teams = teams_of((self._cluster.namespaces or {}).values())
        for item in config_maps:
            team = teams.get(item["metadata"]["namespace"])
            if team is None:
                continue
            try:
                claim = claim_of(item, team, self._queue_prefix)
            except Unfit:
                continue
            if claim.registration.type is EndpointType.ASYNC:
                yield _target(claim), _task_queue(claim)


def _target(claim: Claim) -> Target:
    return claim.namespace, claim.registration.name


def _task_queue(claim: Claim) -> TaskQueue:
    return TaskQueue(claim.team, claim.registration.name, claim.registration.queue)


async def _say(send: Send, status: int, document: dict[str, object]) -> None:
    await answer(send, status, json.dumps(document).encode())
