"""The controller: compares what is declared with what is recorded, again and again."""

import asyncio

import structlog
from kubernetes_asyncio import client
from prometheus_client import CollectorRegistry, Counter, Gauge

from services.core import channel
from services.core.backoff import Backoff
from services.core.exchange import Receive, Scope, Send
from services.core.metrics import CONTENT_TYPE, exposition, new_registry
from services.core.records import database
from services.core.relay import answer
from services.core.server import Lifecycle, Server
from services.core.workers import workers_of

from .cluster import Cluster, Sources
from .conditions import Conditions
from .errors import LeadershipLost
from .records import DATABASE_ERRORS, Records, Row
from .registrations import judge, teams_of
from .settings import CacherSettings
from .state import State

_PREFIX = "llm_platform_cacher"
_SETTLE_SECONDS = 0.1


class Measures:
    """The cacher's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.active = Gauge(f"{_PREFIX}_active", "Whether this one writes", registry=registry)
        self.endpoints = Gauge(f"{_PREFIX}_endpoints", "Endpoints in force", registry=registry)
        self.problems = Gauge(
            f"{_PREFIX}_problems", "Registrations not in force", registry=registry
        )
        self.passes = Counter(f"{_PREFIX}_passes", "Comparisons", ["result"], registry=registry)
        self.ready_workers = Gauge(
            f"{_PREFIX}_ready_workers",
            "Workers that take requests",
            ["endpoint"],
            registry=registry,
        )


class Cacher:
    """All parts of one cacher process."""

    def __init__(
        self,
        settings: CacherSettings,
        sources: Sources,
        api: client.CoreV1Api,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._log = log
        self._cluster = Cluster(sources)
        self._conditions = Conditions(api, log)
        self._engine = database(settings.database_url, pool_size=2)
        self._redis = channel.connect(settings.redis_url)
        self._state = State(self._redis, settings.state_ttl_seconds, log)
        self._registry = new_registry()
        self._measures = Measures(self._registry)
        self._lifecycle = Lifecycle()
        self._database_seen = False
        self._unsent: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer health and metrics."""
        match scope["path"]:
            case "/healthz":
                await answer(send, 200, b"{}")
            case "/readyz":
                ready = self._cluster.synced and self._database_seen
                await answer(send, 200 if ready else 503, b"{}")
            case "/metrics":
                body = exposition(self._registry)
                kind = [(b"content-type", CONTENT_TYPE.encode())]
                await send({"type": "http.response.start", "status": 200, "headers": kind})
                await send({"type": "http.response.body", "body": body})
            case _:
                await answer(send, 404, b"{}")

    async def run(self) -> None:
        """Work until SIGTERM."""
        server = Server(self, self._settings, self._lifecycle, self._log)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._cluster.follow_namespaces()),
                group.create_task(self._cluster.follow_config_maps()),
                group.create_task(self._cluster.follow_slices()),
                group.create_task(self._lead()),
            ]
            await server.serve()
            for task in background:
                task.cancel()
        await self._redis.aclose()
        await self._engine.dispose()

    async def _lead(self) -> None:
        """Become the active one, work as such, and start again after every loss."""
        backoff = Backoff(limit_seconds=5)
        told = False
        while True:
            try:
                await self._lead_once(backoff)
            except LeadershipLost as loss:
                self._database_seen = True
                if not told:
                    self._log.info("waiting for the lock", reason=str(loss))
                told = True
            except DATABASE_ERRORS as error:
                self._measures.passes.labels("database_error").inc()
                self._log.warning("the database is away", error=type(error).__name__)
                told = False
            self._measures.active.set(0)
            await backoff.wait()

    async def _lead_once(self, backoff: Backoff) -> None:
        records = await Records.lead(self._engine)
        try:
            self._database_seen = True
            self._measures.active.set(1)
            self._log.info("active")
            while True:
                await self._until_due()
                await self.compare(records)
                backoff.reset()
        finally:
            await records.close()

    async def _until_due(self) -> None:
        every = min(self._settings.resync_seconds, self._settings.state_ttl_seconds / 2)
        try:
            async with asyncio.timeout(every):
                await self._cluster.changed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)  # changes come in groups
        except TimeoutError:
            pass

    async def compare(self, records: Records) -> None:
        """Bring records, conditions and state to what the cluster declares."""
        cluster = self._cluster
        cluster.changed.clear()
        if cluster.namespaces is None or cluster.config_maps is None or cluster.slices is None:
            return  # a part that isn't known yet would look like a part that is gone
        teams = teams_of(cluster.namespaces.values())
        owners = await records.owners(self._settings.name_release_seconds)
        verdict = judge(cluster.config_maps.values(), teams, owners)
        workers = workers_of(cluster.slices.values())

        def ready(name: str, namespace: str) -> int:
            found = workers.get((namespace, name))
            return len(found.ready) if found else 0

        rows = {
            name: Row(claim, ready(name, claim.namespace))
            for name, claim in verdict.holding.items()
        }
        kept = {name: ready(name, namespace) for name, namespace in verdict.kept.items()}
        outcome = await records.apply(rows, kept, owners)
        if outcome.changed:
            self._log.info("endpoints changed", endpoints=outcome.changed)
        problems = dict(verdict.problems)
        for name, problem in outcome.refused.items():
            claim = verdict.holding[name]
            problems[claim.namespace, claim.config_map] = problem
        in_force = {name: row.ready_workers for name, row in rows.items()} | kept
        self._unsent.update(outcome.changed)
        if await self._state.publish(in_force, sorted(self._unsent)):
            self._unsent.clear()
        of_teams = {key: item for key, item in cluster.config_maps.items() if key[0] in teams}
        await self._conditions.apply(of_teams, problems)
        self._measure(in_force, len(problems))

    def _measure(self, in_force: dict[str, int], problems: int) -> None:
        self._measures.passes.labels("done").inc()
        self._measures.endpoints.set(len(in_force))
        self._measures.problems.set(problems)
        self._measures.ready_workers.clear()
        for name, ready_workers in in_force.items():
            self._measures.ready_workers.labels(name).set(ready_workers)
