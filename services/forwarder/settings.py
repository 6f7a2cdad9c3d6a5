"""The forwarder's settings."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from services.core.pool import Address
from services.core.settings import ServerSettings


class ForwarderSettings(ServerSettings):
    """What the forwarder needs; it has no secrets and no access to the cluster."""

    port: int = 5000
    endpoint: str
    """The endpoint's name, for logs and metrics."""
    upstream: str = "http://127.0.0.1:5005"
    """The model's server."""
    max_concurrency: int = Field(ge=1)
    """Open requests above which the answer is 429."""
    health_path: str = "/health"
    """The model's health route; the worker is ready while it answers 2xx."""
    health_every_seconds: float = 1
    """How often the model's health is asked."""
    health_timeout_seconds: float = 3
    """How long that answer may take."""
    health_failures: int = Field(default=3, ge=1)
    """How many failures in a row make a ready worker unready: a busy engine answers late."""
    model_dead_seconds: float = Field(default=300, gt=0)
    """How long a model that was healthy may fail and send nothing before it is to be restarted."""
    request_timeout_seconds: float = 600
    """How long a request may take in all."""
    connect_seconds: float = 2
    """How long a connection to the model may take."""

    @field_validator("upstream")
    @classmethod
    def _plain_http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme != "http" or not parts.hostname or parts.path not in {"", "/"}:
            raise ValueError("must be of the form http://host:port")
        return value

    @property
    def address(self) -> Address:
        """The model's server as an address."""
        parts = urlsplit(self.upstream)
        return Address(parts.hostname or "", parts.port or 80)
