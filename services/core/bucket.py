"""A bucket as asynchronous code needs it: one client, its calls in threads of their own."""

import asyncio
import datetime
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import ServiceError

_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_MINE_ALREADY = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})
_PAGE = 1000
_Result = TypeVar("_Result")


class BucketAway(ServiceError):  # noqa: N818
    """The bucket didn't do what it was asked; the message is for logs, it may say too much."""


@dataclass(frozen=True)
class Page:
    """Some objects of a bucket, in the order of their keys."""

    keys: Sequence[str]
    old: Sequence[str]
    """Those that were written before the asked time."""
    last: bool


class Bucket:
    """S3, or a server that speaks its protocol; where it is and who we are the environment says.

    Args:
        name: the bucket's name.
        threads: how many calls may be open at once.
    """

    def __init__(self, name: str, *, threads: int = 16) -> None:
        # Imported here since it is slow to import, and not every process has a bucket.
        from boto3.session import Session  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        self.name = name
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="bucket")
        # One client for the process: each builds its own pool and, in a cloud, its own token.
        self._client: Any = Session().client(
            "s3",
            config=Config(
                max_pool_connections=threads,
                retries={"mode": "standard", "max_attempts": 3},
                connect_timeout=3,
                read_timeout=20,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path"},
            ),
        )

    async def put(self, key: str, data: bytes) -> None:
        """Write an object.

        Raises:
            BucketAway: it isn't written.
        """
        await self._call(lambda: self._client.put_object(Bucket=self.name, Key=key, Body=data))

    async def get(self, key: str) -> bytes | None:
        """Return an object's bytes, or None when there is no such object.

        Raises:
            BucketAway: it is unknown whether there is one.
        """

        from botocore.exceptions import ClientError  # noqa: PLC0415

        def read() -> bytes | None:
            try:
                return self._client.get_object(Bucket=self.name, Key=key)["Body"].read()
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

        return await self._call(read)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete up to a thousand objects; those that are gone already are no error.

        Raises:
            BucketAway: some of them may still be there.
        """
        objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}

        def delete() -> None:
            answer = self._client.delete_objects(Bucket=self.name, Delete=objects)
            for problem in answer.get("Errors", ()):
                raise BucketAway(f"bucket {self.name!r}: {problem.get('Code')} at a deletion")

        if keys:
            await self._call(delete)

    async def page(self, prefix: str, after: str, older_than: datetime.datetime) -> Page:
        """List up to a thousand objects whose keys come after ``after``.

        Raises:
            BucketAway: it can't be listed.
        """

        def listed() -> Page:
            answer = self._client.list_objects_v2(
                Bucket=self.name, Prefix=prefix, StartAfter=after, MaxKeys=_PAGE
            )
            found = answer.get("Contents", [])
            old = [item["Key"] for item in found if item["LastModified"] < older_than]
            return Page([item["Key"] for item in found], old, not answer.get("IsTruncated"))

        return await self._call(listed)

    async def create(self) -> None:
        """Create the bucket unless it is there.

        Raises:
            BucketAway: there is none.
        """
        await self._call(self._create)

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _create(self) -> None:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        try:
            self._client.head_bucket(Bucket=self.name)
        except ClientError as error:
            if _code(error) not in {"NoSuchBucket", "404", "NotFound"}:
                raise
            try:
                self._client.create_bucket(Bucket=self.name)
            except ClientError as again:
                if _code(again) not in _MINE_ALREADY:
                    raise

    async def _call(self, work: Callable[[], _Result]) -> _Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._explained, work)

    def _explained(self, work: Callable[[], _Result]) -> _Result:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        try:
            return work()
        except (BotoCoreError, ClientError, OSError) as error:
            raise BucketAway(f"bucket {self.name!r}: {type(error).__name__}: {error}") from error


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
