"""The cacher's settings."""

from pydantic import Field

from services.core.settings import ServerSettings


class CacherSettings(ServerSettings):
    """What the cacher needs."""

    port: int = 8081
    linger_seconds: float = 0
    drain_seconds: float = 5
    database_url: str
    """``postgresql://user:password@host:port/name``."""
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
