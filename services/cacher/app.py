"""The controller: compares what is declared with what is recorded, again and again."""

import asyncio
import datetime

import structlog

from services.core import channel
from services.core.backoff import Backoff
from services.core.broker.settings import broker_settings
from services.core.bucket import Bucket
from services.core.database import database
from services.core.exchange import Receive, Scope, Send
from services.core.metrics import CONTENT_TYPE, exposition, new_registry
from services.core.relay import answer
from services.core.server import Lifecycle, Server
from services.core.task_broker import TaskBroker
from services.core.workers import Target, workers_of

from .cluster import Cluster, Sources
from .conditions import Conditions
from .errors import LeadershipLost
from .lift import Lift
from .measures import Measures
from .records import DATABASE_ERRORS, Records, Row
from .registrations import judge, teams_of
from .retention import Retention
from .scaling import PATH as SCALING
from .scaling import Scaling
from .settings import CacherSettings
from .state import State
from .team_users import TeamUsers

_SETTLE_SECONDS = 0.1
_SOON_SECONDS = 2


class Cacher:
    """All parts of one cacher process.

    Args:
        settings: the settings.
        sources: where the cluster's objects come from.
        conditions: tells what is wrong with registrations.
        lift: wakes workloads that shouldn't sleep.
        log: the service's logger.
    """

    def __init__(
        self,
        settings: CacherSettings,
        sources: Sources,
        conditions: Conditions,
        lift: Lift,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._log = log
        self._cluster = Cluster(sources)
        self._conditions = conditions
        self._lift = lift
        self._engine = database(settings, pool_size=2)
        self._redis = channel.connect(settings.redis_url)
        self._state = State(self._redis, settings.state_ttl_seconds, log)
        self._registry = new_registry()
        self._measures = Measures(self._registry)
        self._broker = TaskBroker(
            broker_settings(
                settings.broker,
                url=settings.broker_url or settings.redis_url,
                region=settings.broker_region,
            ),
            threads=4,
        )
        self._scaling = Scaling(
            self._cluster, self._broker, self._measures, settings.queue_prefix, log
        )
        self._users = TeamUsers(settings.redis_users_dir, self._redis, log)
        self._bucket = Bucket(settings.bucket, threads=2) if settings.bucket else None
        keep = datetime.timedelta(seconds=settings.task_retention_seconds)
        self._retention = Retention(self._engine, self._bucket, keep, self._leads, log)
        self._lifecycle = Lifecycle()
        self._leading = False
        self._database_seen = False
        self._unsent: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer health, metrics, and how much there is to do."""
        match scope["path"]:
            case "/healthz":
                await answer(send, 200, b"{}")
            case "/readyz":
                await answer(send, 200 if self._ready() else 503, b"{}")
            case "/metrics":
                body = exposition(self._registry)
                kind = [(b"content-type", CONTENT_TYPE.encode())]
                await send({"type": "http.response.start", "status": 200, "headers": kind})
                await send({"type": "http.response.body", "body": body})
            case path if path.startswith(SCALING):
                await self._scaling.answer(path, send)
            case _:
                await answer(send, 404, b"{}")

    def _ready(self) -> bool:
        stale = self._leading and not self._state.fresh
        return self._cluster.synced and self._database_seen and not stale

    def _leads(self) -> bool:
        return self._leading

    async def run(self) -> None:
        """Work until SIGTERM."""
        server = Server(self, self._settings, self._lifecycle, self._log)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._cluster.follow_namespaces()),
                group.create_task(self._cluster.follow_config_maps()),
                group.create_task(self._cluster.follow_slices()),
                group.create_task(self._cluster.follow_deployments()),
                group.create_task(self._scaling.run()),
                group.create_task(self._keep_users()),
                group.create_task(self._retention.run(self._settings.retention_check_seconds)),
                group.create_task(self._lead()),
            ]
            await server.serve()
            for task in background:
                task.cancel()
        self._broker.close()
        if self._bucket is not None:
            self._bucket.close()
        await self._redis.aclose()
        await self._engine.dispose()

    async def _keep_users(self) -> None:
        """Keep teams' users of Redis, where their tasks are there."""
        if self._settings.broker == "redis":
            await self._users.run()

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
            self._leading = False
            self._measures.active.set(0)
            await backoff.wait()

    async def _lead_once(self, backoff: Backoff) -> None:
        records = await Records.lead(self._engine)
        try:
            self._database_seen = self._leading = True
            self._state.begin()
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
        if self._lift.waiting:
            every = min(every, _SOON_SECONDS)
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
        prefix = self._settings.queue_prefix
        verdict = judge(cluster.config_maps.values(), teams, owners, prefix)
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
        await self._lift.apply(verdict.holding.values(), cluster.asleep)
        of_teams = {key: item for key, item in cluster.config_maps.items() if key[0] in teams}
        await self._conditions.apply(of_teams, problems)
        homes = {name: claim.namespace for name, claim in verdict.holding.items()} | verdict.kept
        ready_workers = {(homes[name], name): count for name, count in in_force.items()}
        self._measure(ready_workers, len(problems))

    def _measure(self, ready_workers: dict[Target, int], problems: int) -> None:
        self._measures.passes.labels("done").inc()
        self._measures.endpoints.set(len(ready_workers))
        self._measures.problems.set(problems)
        self._measures.ready_workers(ready_workers)
