"""The base of every service's settings: read from the environment, checked at start-up."""

import json
import sys
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "LLM_PLATFORM_"


class ServiceSettings(BaseSettings):
    """Settings that every service has; each variable is ``LLM_PLATFORM_`` and the field's name."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # some are secrets
    )

    log_level: str = "info"
    """One of debug, info, warning, error."""


class ServerSettings(ServiceSettings):
    """Settings of a service that listens for HTTP."""

    host: str = "0.0.0.0"  # noqa: S104  (a pod's address isn't known beforehand)
    """Address to listen on."""
    port: int
    """Port to listen on."""
    drain_seconds: float = 600
    """How long open requests may go on after SIGTERM."""
    linger_seconds: float = 5
    """How long new requests are still taken after SIGTERM, until every router knows."""
    head_seconds: float = Field(default=30, gt=0)
    """How long a client may take to send a request's headers."""


Settings = TypeVar("Settings", bound=ServiceSettings)


def from_environment(kind: type[Settings]) -> Settings:
    """Read settings; a wrong one ends the process with a line that names it, never its value."""
    try:
        return kind()
    except ValidationError as error:
        problems = {
            PREFIX + "_".join(str(part) for part in item["loc"]).upper(): item["msg"]
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        }
        line = {"level": "error", "event": "settings are wrong", "problems": problems}
        sys.exit(json.dumps(line))
