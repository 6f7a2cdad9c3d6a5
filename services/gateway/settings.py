"""The gateway's settings."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.core.database import DatabaseSettings
from services.core.settings import ServerSettings

MEBIBYTE = 1024 * 1024


class MigrationSettings(DatabaseSettings):
    """What the migration needs."""

    database_wait_seconds: float = 300
    """How long the migration waits for Postgres to come up."""


class GatewaySettings(ServerSettings, DatabaseSettings):
    """What the gateway needs."""

    port: int = 8080
    redis_url: str
    """``redis://:password@host:port/0``."""
    keys_dir: Path = Path("/etc/llm-platform/keys")
    """A file for each declared key: its name is the team's, or ``admin``; its content the key."""
    kubeconfig: str = ""
    """Empty in a pod; a kubeconfig's path for development."""
    refresh_seconds: float = 5
    """How often keys and endpoints are loaded when no news comes."""
    max_body_bytes: int = 8 * MEBIBYTE
    """The largest request body."""
    max_result_bytes: int = 32 * MEBIBYTE
    """The largest result of an asynchronous task."""
    bucket: str = ""
    """Where payloads and results of asynchronous tasks are kept; without it none are taken."""
    broker: Literal["redis", "sqs", "servicebus"] = "redis"
    """What carries asynchronous tasks."""
    broker_url: str = ""
    """Where the broker is; empty for the Redis above."""
    broker_region: str = ""
    """The region of the queues, on SQS."""
    callback_allow: str = ""
    """Hosts and networks inside that callbacks may reach all the same, separated by commas."""
    max_held_bytes: int = 64 * MEBIBYTE
    """How much of all requests' bodies is held at once; above it the answer is 503."""
    connect_seconds: float = 2
    """How long a connection to a worker may take."""
    keep_connections_seconds: float = 15
    """How long an unused connection to a worker is kept."""
    idle_timeout_seconds: float = 60
    """How long a worker may be silent in mid-answer."""
    max_tries: int = 3
    """How many workers are tried while none has begun on the request."""
    routing: Literal["workers", "service"] = "workers"
    """Who chooses the worker: the gateway, or a mesh behind the endpoint's Service."""
    retry_seconds: float = Field(default=1, gt=0)
    """How often the first of those who wait for busy workers tries again, if no place is freed."""
    activation_expiry_seconds: int = Field(default=60, ge=1)
    """How long a sleeping endpoint is wanted after the last sign of a request for it."""
    activation_renew_seconds: float = Field(default=20, gt=0)
    """How often that sign is given while a request is open: well within the expiry."""
    cloudwatch_namespace: str = ""
    """CloudWatch's namespace for the endpoints' concurrency; empty publishes none."""
    cloudwatch_period_seconds: int = Field(default=60, ge=1)
    """What one published value covers."""
    max_answer_bytes: int = 16 * MEBIBYTE
    """The largest answer of a sync task, and the longest event of a streaming one."""
    fastest_tokens_per_second: float = 500
    """No engine is faster than this for one request: what can't end in time is refused at once."""
