"""The forwarder's settings."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from components.domain.hooks import Hooks
from services.core.broker.settings import (
    LONGEST_LEASE_SECONDS,
    RedisSettings,
    ServiceBusSettings,
    SqsSettings,
    broker_settings,
)
from services.core.pool import Address
from services.core.settings import ServerSettings

MEBIBYTE = 1024 * 1024


class ForwarderSettings(ServerSettings):
    """What the forwarder needs; it has no access to the cluster."""

    port: int = 5000
    mode: Literal["http", "async"] = "http"
    """``async`` takes tasks from a queue; requests are then refused."""
    endpoint: str
    """The endpoint's name, for logs and metrics."""
    upstream: str = "http://127.0.0.1:5005"
    """The model's server."""
    max_concurrency: int = Field(ge=1)
    """Open requests above which the answer is 429; tasks that are worked on at once."""
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
    """How long a request or a task may take in all."""
    connect_seconds: float = 2
    """How long a connection to the model may take."""
    hooks: str = ""
    """What runs before and after the model, as JSON."""
    callback_allow: str = ""
    """Hosts and networks inside that callbacks may reach all the same, separated by commas."""
    callback_seconds: float = Field(default=10, gt=0)
    """How long one callback may take."""
    callback_retry_seconds: float = Field(default=1, gt=0)
    """The wait after a callback's first failure; it doubles."""
    max_body_bytes: int = 8 * MEBIBYTE
    """The largest request body that is read as a whole, as a check of it needs."""

    predict_path: str = "/predict"
    """Where a task that names no path is posted to at the model."""
    broker: Literal["redis", "sqs", "servicebus"] = "redis"
    """Which kind of queue tasks come from."""
    broker_url: SecretStr = SecretStr("")
    """Where the broker is; not used for SQS."""
    broker_region: str = ""
    """The region of an SQS queue."""
    queue: str = ""
    """The queue's URL on SQS, its name on Service Bus; empty on Redis."""
    team: str = ""
    """The endpoint's team, whose queue it is."""
    gateway_url: str = ""
    """Where results go: ``http://host:port``."""
    lease_seconds: float = Field(default=60, gt=0, le=LONGEST_LEASE_SECONDS)
    """How long a killed worker's tasks stay invisible; a live one extends again and again."""
    max_deliveries: int = Field(default=5, ge=1)
    """Deliveries after which a task is a dead letter."""
    max_result_bytes: int = 32 * MEBIBYTE
    """The largest result of a task."""

    @field_validator("upstream")
    @classmethod
    def _plain_http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme != "http" or not parts.hostname or parts.path not in {"", "/"}:
            raise ValueError("must be of the form http://host:port")
        return value

    @field_validator("hooks")
    @classmethod
    def _readable(cls, value: str) -> str:
        Hooks.from_json(value)
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.mode == "async":
            parts = urlsplit(self.gateway_url)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("GATEWAY_URL must be of the form http://host:port in async mode")
            if not self.team:
                raise ValueError("TEAM must be given in async mode")
            if self.broker != "redis" and not self.queue:
                raise ValueError(f"QUEUE must be given for {self.broker}")
            _ = self.broker_settings
        return self

    @property
    def address(self) -> Address:
        """The model's server as an address."""
        parts = urlsplit(self.upstream)
        return Address(parts.hostname or "", parts.port or 80)

    @property
    def hooks_to_run(self) -> Hooks:
        """What runs before and after the model."""
        return Hooks.from_json(self.hooks)

    @property
    def allowed_callbacks(self) -> tuple[str, ...]:
        """Hosts and networks inside that callbacks may reach."""
        return tuple(part.strip() for part in self.callback_allow.split(",") if part.strip())

    @property
    def broker_settings(self) -> RedisSettings | SqsSettings | ServiceBusSettings:
        """The broker's settings in their own shape."""
        return broker_settings(
            self.broker, url=self.broker_url.get_secret_value(), region=self.broker_region
        )
