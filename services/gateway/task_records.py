"""Tasks in Postgres: each has one record, and its first result is its only one."""

import asyncio
import datetime
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum

import structlog
from sqlalchemy import CursorResult, delete, func, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

from services.core.records import Task

from .errors import TasksAway

EXPIRED_STATUS = 408
_DATABASE_SECONDS = 15
_AT_ONCE = 4
"""Of a burst of tasks each waits for a place here, where it costs less than a connection."""
_MARGIN = datetime.timedelta(seconds=60)
"""How much later than a limit a worker's word may come, since clocks differ and words travel."""


class TaskStatus(StrEnum):
    """What became of a task; the names are those of the wire contract."""

    PENDING = "PENDING"
    STARTED = "STARTED"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    UNDEFINED = "UNDEFINED"


FINAL = (TaskStatus.SUCCESS, TaskStatus.FAILURE)


@dataclass(frozen=True)
class Seen:
    """A task's status as its sender is told it."""

    status: TaskStatus
    status_code: int | None = None
    reason: str | None = None


def seen(task: Task, now: datetime.datetime) -> Seen:
    """Return what is true of a task now, also when nobody could tell the record.

    A task that no worker took in time will never run; one that was begun on and whose worker
    should have ended long ago is lost, and what it did is unknown.
    """
    status = TaskStatus(task.status)
    if status is TaskStatus.PENDING and now > task.expires_at + _MARGIN:
        reason = "The task expired before a worker took it."
        return Seen(TaskStatus.FAILURE, EXPIRED_STATUS, reason)
    if status is TaskStatus.STARTED and task.started_at is not None:
        limit = task.started_at + datetime.timedelta(seconds=task.timeout_seconds)
        if now > max(limit, task.expires_at) + 2 * _MARGIN:
            return Seen(TaskStatus.UNDEFINED, None, "The task's worker is gone without a result.")
    return Seen(status, task.status_code)


class TaskRecords:
    """Reads and writes the records of tasks; whatever the database can't do is ``TasksAway``."""

    def __init__(self, engine: AsyncEngine, log: structlog.typing.FilteringBoundLogger) -> None:
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._log = log

    async def add(self, task: Task) -> None:
        """Write a new task."""
        async with self._session() as session:
            session.add(task)

    async def remove(self, task_id: str) -> None:
        """Forget a task that was never sent."""
        async with self._session() as session:
            await session.execute(delete(Task).where(Task.id == task_id))

    async def find(self, task_id: str) -> Task | None:
        """Return a task, or None when there is none of that id."""
        if not _is_id(task_id):
            return None
        async with self._session() as session:
            return await session.get(Task, task_id)

    async def started(self, task_id: str) -> bool:
        """Say that a worker begins on a task; return whether there was still something to do."""
        statement = (
            update(Task)
            .where(Task.id == task_id, Task.status.not_in(FINAL))
            .values(status=TaskStatus.STARTED, started_at=func.now())
        )
        return await self._changed(statement) > 0

    async def finish(
        self, task_id: str, status: TaskStatus, status_code: int | None, result_key: str
    ) -> bool:
        """Give a task its result; return False when it has one already: the first one counts."""
        statement = (
            update(Task)
            .where(Task.id == task_id, Task.status.not_in(FINAL))
            .values(
                status=status,
                status_code=status_code,
                result_key=result_key,
                settled_at=func.now(),
            )
        )
        return await self._changed(statement) > 0

    async def reopen(self, task_ids: Sequence[str], expire_seconds: int) -> int:
        """Let failed tasks run once more, with as much time to wait as new ones have."""
        expires = func.greatest(
            Task.expires_at, func.now() + datetime.timedelta(seconds=expire_seconds)
        )
        statement = (
            update(Task)
            .where(Task.id.in_(task_ids), Task.status != TaskStatus.SUCCESS)
            .values(
                status=TaskStatus.PENDING,
                status_code=None,
                result_key="",
                started_at=None,
                expires_at=expires,
                settled_at=expires,
            )
        )
        return await self._changed(statement)

    async def _changed(self, statement) -> int:
        async with self._session() as session:
            result = await session.execute(statement)
            assert isinstance(result, CursorResult)  # noqa: S101  (an update has a count)
            return result.rowcount

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        try:
            async with (
                asyncio.timeout(_DATABASE_SECONDS),
                self._places,
                self._sessions.begin() as session,
            ):
                yield session
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            cause = type(getattr(error, "orig", None) or error).__name__
            self._log.warning("tasks can't be read or written", error=cause)
            raise TasksAway("Tasks can't be read or written now; try again soon.") from error


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
