"""Which broker, and how it is reached: one typed shape for each."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, field_validator

LONGEST_LEASE_SECONDS = 43_200
"""SQS keeps no message invisible for longer than twelve hours."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RedisSettings(_Settings):
    """A Redis, or what speaks like one, of one node or behind one address."""

    kind: Literal["redis"] = "redis"
    url: SecretStr
    """``redis://user:password@host:port/0``, or ``rediss://`` with TLS."""

    @field_validator("url")
    @classmethod
    def _one_server(cls, value: SecretStr) -> SecretStr:
        parts = urlsplit(value.get_secret_value())
        if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
            raise ValueError("must be of the form redis://user:password@host:port/0")
        if "," in parts.netloc:
            raise ValueError("names several nodes: a Redis in cluster mode can't be a broker")
        return value


class SqsSettings(_Settings):
    """Amazon's queue service; credentials come from the pod's identity."""

    kind: Literal["sqs"] = "sqs"
    region: str = Field(min_length=1)
    """Never guessed: queues of another region would look like none at all."""
    endpoint_url: str | None = None
    """Another address of the service, as of a private endpoint."""


class ServiceBusSettings(_Settings):
    """Azure's queue service; credentials come from the pod's identity unless the URL has a key."""

    kind: Literal["servicebus"] = "servicebus"
    url: SecretStr
    """``azureservicebus://DefaultAzureCredential@namespace.servicebus.windows.net``."""

    @field_validator("url")
    @classmethod
    def _of_the_scheme(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if not text.startswith("azureservicebus://") or "@" not in text:
            raise ValueError("must be of the form azureservicebus://credential@namespace")
        return value


BrokerSettings = Annotated[
    RedisSettings | SqsSettings | ServiceBusSettings, Field(discriminator="kind")
]

_adapter: TypeAdapter[RedisSettings | SqsSettings | ServiceBusSettings] = TypeAdapter(
    BrokerSettings, config=ConfigDict(hide_input_in_errors=True)
)


def broker_settings(
    kind: str, *, url: str = "", region: str = "", endpoint_url: str = ""
) -> RedisSettings | SqsSettings | ServiceBusSettings:
    """Return the settings of a kind of broker.

    Raises:
        pydantic.ValidationError: naming what is wrong, never its value.
    """
    given: dict[str, Any] = {"kind": kind}
    if kind == "sqs":
        given |= {"region": region, "endpoint_url": endpoint_url or None}
    else:
        given["url"] = url
    return _adapter.validate_python(given)
