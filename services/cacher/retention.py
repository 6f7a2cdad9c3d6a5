"""Old tasks go: their records first, then what they kept in the bucket."""

import asyncio
import datetime
from collections.abc import Callable, Sequence

import structlog
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

from services.core.bucket import Bucket, BucketAway
from services.core.records import Task

from .records import DATABASE_ERRORS

_ROWS = 500
_PREFIXES = ("tasks/", "results/")
_YOUNG = datetime.timedelta(hours=1)
"""An object so young may belong to a task whose record is about to be written."""


class Retention:
    """Deletes tasks that settled long ago, in batches; it may be stopped anywhere.

    Args:
        engine: the database.
        bucket: where payloads and results are; None when there is none.
        keep: how long a task is kept after it settled.
        leads: whether this process is the active one.
        log: the service's logger.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        bucket: Bucket | None,
        keep: datetime.timedelta,
        leads: Callable[[], bool],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._sessions = async_sessionmaker(engine)
        self._bucket = bucket
        self._keep = keep
        self._leads = leads
        self._log = log

    async def run(self, every_seconds: float) -> None:
        """Delete what is old, every so often, until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            if not self._leads():
                continue
            try:
                await self.apply()
            except BucketAway as error:
                self._log.warning("old results stay for now", error=str(error))
            except DATABASE_ERRORS as error:
                self._log.warning("old tasks stay for now", error=type(error).__name__)

    async def apply(self) -> None:
        """Delete what is old."""
        rows = objects = 0
        while deleted := await self._delete_rows():
            rows += deleted
        if self._bucket is not None:
            for prefix in _PREFIXES:
                objects += await self._delete_objects(self._bucket, prefix)
        if rows or objects:
            self._log.info("old tasks deleted", tasks=rows, objects=objects)

    async def _delete_rows(self) -> int:
        old = (
            select(Task.id)
            .where(Task.settled_at < func.now() - self._keep)
            .order_by(Task.settled_at)
            .limit(_ROWS)
        )
        async with self._sessions.begin() as session:
            deleted = await session.scalars(delete(Task).where(Task.id.in_(old)).returning(Task.id))
            return len(deleted.all())

    async def _delete_objects(self, bucket: Bucket, prefix: str) -> int:
        """Delete objects of tasks without a record: theirs are over, or never began."""
        written_before = datetime.datetime.now(datetime.UTC) - min(self._keep, _YOUNG)
        after, count = "", 0
        while True:
            page = await bucket.page(prefix, after, written_before)
            orphans = await self._without_record(page.old)
            await bucket.delete(orphans)
            count += len(orphans)
            if page.last or not page.keys:
                return count
            after = page.keys[-1]

    async def _without_record(self, objects: Sequence[str]) -> list[str]:
        ids = {key: _task_id(key) for key in objects}
        if not ids:
            return []
        async with self._sessions() as session:
            found = await session.scalars(select(Task.id).where(Task.id.in_(set(ids.values()))))
            known = set(found.all())
        return [key for key, task_id in ids.items() if task_id not in known]


def _task_id(key: str) -> str:
    """Return the task of ``<kind>/<team>/<endpoint>/<id>/<name>``."""
    parts = key.split("/")
    return parts[3] if len(parts) == 5 else ""
