"""The bucket, as the warmer needs it, with errors that say what to do."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import boto3
import structlog
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from .address import WeightsAddress
from .errors import StoreAway

_SAY_SECONDS = 5.0
_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_REFUSED = frozenset({"AccessDenied", "403", "Forbidden"})
_NO_BUCKET = frozenset({"NoSuchBucket", "404", "NotFound"})
_MINE_ALREADY = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})


class Sink(Protocol):
    """Where the bytes of a range go."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""
        ...


class Store:
    """S3, or a server that speaks its protocol.

    Args:
        transfers: how many requests may be in flight at once.
        log: where waiting is told.
    """

    def __init__(self, transfers: int, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log
        self._transfers = transfers
        self._client: Any = boto3.client(
            "s3",
            config=Config(
                max_pool_connections=transfers + 2,
                retries={"mode": "standard", "max_attempts": 5},
                connect_timeout=5,
                read_timeout=60,
                # Our checksums cover whole files; S3's optional ones aren't known everywhere.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path"},
            ),
        )

    def wait(self, limit_seconds: float) -> None:
        """Wait until the server answers, whatever it answers.

        Raises:
            StoreAway: it didn't within the limit.
        """
        started = time.monotonic()
        said = started - _SAY_SECONDS
        while True:
            try:
                self._client.list_buckets()
                return
            except ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                if status < 500:  # it is there; what we may do shows later
                    return
                problem: Exception = error
            except BotoCoreError as error:
                problem = error
            now = time.monotonic()
            if now - said >= _SAY_SECONDS:
                said = now
                waited = round(now - started)
                self._log.info("waiting for the bucket's server", waited_seconds=waited)
            if now - started > limit_seconds:
                raise StoreAway(f"no answer within {limit_seconds:g} s: {problem}") from problem
            time.sleep(0.5)

    def create_bucket(self, name: str) -> bool:
        """Create a bucket; return whether it is new."""
        with _explained(f"bucket {name!r}"):
            try:
                self._client.head_bucket(Bucket=name)
            except ClientError as error:
                if _code(error) not in _NO_BUCKET:
                    raise
            else:
                return False
            try:
                self._client.create_bucket(Bucket=name, **self._location())
            except ClientError as error:  # another one was quicker
                if _code(error) not in _MINE_ALREADY:
                    raise
                return False
            return True

    def _location(self) -> dict[str, Any]:
        region = self._client.meta.region_name
        if region in {None, "us-east-1"}:
            return {}
        return {"CreateBucketConfiguration": {"LocationConstraint": region}}

    def read(self, address: WeightsAddress, path: str) -> bytes | None:
        """Return a small object, or None when there is none."""
        with _explained(f"{address}{path}"):
            try:
                answer = self._client.get_object(Bucket=address.bucket, Key=address.key(path))
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise
            return answer["Body"].read()

    def copy_range(
        self, address: WeightsAddress, path: str, start: int, end: int, to: Sink
    ) -> None:
        """Write the bytes from ``start`` up to before ``end`` of an object to ``to``."""
        with _explained(f"{address}{path}"):
            answer = self._client.get_object(
                Bucket=address.bucket, Key=address.key(path), Range=f"bytes={start}-{end - 1}"
            )
            for chunk in answer["Body"].iter_chunks(1024 * 1024):
                to.write(chunk)

    def size(self, address: WeightsAddress, path: str) -> int | None:
        """Return an object's size, or None when there is none."""
        with _explained(f"{address}{path}"):
            try:
                answer = self._client.head_object(Bucket=address.bucket, Key=address.key(path))
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise
            return answer["ContentLength"]

    def upload(self, file: Path, address: WeightsAddress, path: str, on_bytes: Any) -> None:
        """Upload a file, in parts when it is large."""
        config = TransferConfig(max_concurrency=self._transfers)
        with _explained(f"{address}{path}"):
            self._client.upload_file(
                str(file), address.bucket, address.key(path), Callback=on_bytes, Config=config
            )

    def write(self, address: WeightsAddress, path: str, content: bytes) -> None:
        """Write a small object."""
        with _explained(f"{address}{path}"):
            self._client.put_object(
                Bucket=address.bucket,
                Key=address.key(path),
                Body=content,
                ContentType="application/json",
            )


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if _code(error) in _REFUSED:
            # S3 tells who may not list a bucket no difference between the two.
            raise StoreAway(
                f"{what}: it isn't there, or this workload's role may not use it ({error})"
            ) from error
        raise StoreAway(f"{what}: {error}") from error
    except BotoCoreError as error:
        raise StoreAway(f"{what}: {error}") from error
    except Exception as error:
        if type(error).__module__.startswith(("boto3", "s3transfer", "urllib3")):
            raise StoreAway(f"{what}: {error}") from error
        raise


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
