"""Where payloads too large for a message, and all results, are kept: the platform's bucket."""

import asyncio
import uuid

import structlog

from services.core.backoff import Backoff
from services.core.bucket import Bucket, BucketAway
from services.core.records import Task

from .errors import TasksAway

PAYLOADS = "tasks"
RESULTS = "results"
_PROBE = "probe/gateway"
_PROBE_SECONDS = 300


class TaskStore:
    """Writes and reads what belongs to tasks; whatever the bucket can't do is ``TasksAway``.

    Args:
        bucket: the bucket, or None when this gateway has none.
        log: where the bucket's own words go, which may say too much for a caller.
    """

    def __init__(self, bucket: Bucket | None, log: structlog.typing.FilteringBoundLogger) -> None:
        self._bucket = bucket
        self._log = log
        self._proven = False

    async def run(self) -> None:
        """Prove again and again that results could be written and read, until cancelled.

        A gateway without that right would take tasks whose results nobody ever sees.
        """
        if self._bucket is None:
            return
        backoff = Backoff(limit_seconds=30)
        while True:
            try:
                await self._prove(self._bucket)
            except BucketAway as error:
                self._proven = False
                self._log.error("the bucket can't keep results", error=str(error))
                await backoff.wait()
                continue
            backoff.reset()
            if not self._proven:
                self._log.info("the bucket keeps results", bucket=self._bucket.name)
            self._proven = True
            await asyncio.sleep(_PROBE_SECONDS)

    async def _prove(self, bucket: Bucket) -> None:
        await bucket.create()
        mark = uuid.uuid4().bytes
        key = f"{_PROBE}-{mark.hex()}"
        await bucket.put(key, mark)
        found = await bucket.get(key)
        await bucket.delete([key])
        if found != mark:
            raise BucketAway(f"bucket {bucket.name!r}: what was written isn't what was read")

    def check(self) -> None:
        """Refuse while it isn't known that results can be kept.

        Raises:
            TasksAway: it isn't.
        """
        if not self._proven:
            raise TasksAway("Results can't be kept now; try again soon.")

    async def put_payload(self, task: Task, payload: bytes) -> str:
        """Keep a payload and return its key."""
        key = f"{PAYLOADS}/{task.team}/{task.endpoint}/{task.id}/payload"
        await self._put(key, payload)
        return key

    async def put_result(self, task: Task, result: bytes) -> str:
        """Keep a result and return its key; of two at once each has its own."""
        key = f"{RESULTS}/{task.team}/{task.endpoint}/{task.id}/{uuid.uuid4().hex[:8]}.json"
        await self._put(key, result)
        return key

    async def get(self, key: str) -> bytes | None:
        """Return what is kept, or None when it isn't there any more."""
        try:
            return await self._there().get(key)
        except BucketAway as error:
            raise self._away(error) from error

    async def drop(self, key: str) -> None:
        """Delete what isn't needed any more; what can't be deleted now goes when it is old."""
        try:
            await self._there().delete([key])
        except (BucketAway, TasksAway) as error:
            self._log.warning("an object stays for a while", key=key, error=str(error))

    def close(self) -> None:
        """Let go of the bucket."""
        if self._bucket is not None:
            self._bucket.close()

    async def _put(self, key: str, data: bytes) -> None:
        try:
            await self._there().put(key, data)
        except BucketAway as error:
            raise self._away(error) from error

    def _there(self) -> Bucket:
        if self._bucket is None:
            raise TasksAway("This gateway has no bucket for tasks.")
        return self._bucket

    def _away(self, error: BucketAway) -> TasksAway:
        self._log.error("the bucket failed", error=str(error))
        return TasksAway("The bucket of tasks doesn't answer now; try again soon.")
