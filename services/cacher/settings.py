"""The cacher's settings."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.core.database import DatabaseSettings
from services.core.settings import ServerSettings


class CacherSettings(ServerSettings, DatabaseSettings):
    """What the cacher needs."""

    port: int = 8081
    linger_seconds: float = 0
    drain_seconds: float = 5
    redis_url: str
    """``redis://:password@host:port/0``."""
    kubeconfig: str = ""
    """Empty in a pod; a kubeconfig's path for development."""
    resync_seconds: float = Field(default=60, gt=0)
    """How often everything is compared again when nothing changed."""
    name_release_seconds: float = Field(default=300, ge=0)
    """How long a name stays its namespace's after its registration is gone."""
    state_ttl_seconds: int = Field(default=120, ge=2)
    """How long an endpoint's state stays in Redis without being renewed."""
    redis_users_dir: Path = Path("/etc/llm-platform/redis-users")
    """A file for each team with a Redis user: its name is the team's, its content the password."""
    broker: Literal["redis", "sqs", "servicebus"] = "redis"
    """What carries asynchronous tasks."""
    broker_url: str = ""
    """Where the broker is; empty for the Redis above."""
    broker_region: str = ""
    """The region of the queues, on SQS."""
    queue_prefix: str = ""
    """What the platform's queues begin with; the team's name and ``_`` follow. Empty on Redis."""
    bucket: str = ""
    """Where payloads and results of asynchronous tasks are; empty when there is none."""
    task_retention_seconds: int = Field(default=7 * 86_400, ge=1)
    """How long a task and its result are kept after it finished, or expired."""
    retention_check_seconds: float = Field(default=3600, gt=0)
    """How often old tasks are looked for."""
