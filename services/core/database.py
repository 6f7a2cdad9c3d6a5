"""How services reach the database, and whose password they use there."""

import asyncio
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from .errors import ServiceError
from .settings import ServiceSettings

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
_SECRET_SECONDS = 3

# A client whose node is lost says nothing more: the server asks, and frees its locks in half a
# minute instead of two hours.
_KEEPALIVES = {
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


class NoPassword(ServiceError, OSError):  # noqa: N818
    """The database's password can't be read; whoever connects tries again, as when it is away."""


class DatabaseSettings(ServiceSettings):
    """Where the database is."""

    database_url: str
    """``postgresql://user:password@host:port/name``; without a password where the next says it."""
    database_secret_arn: str = ""
    """The secret of AWS Secrets Manager with the password, read for each new connection: it may
    change at any time."""
    database_ca: Path | None = None
    """Certificates of who signs the server's; with them connections are encrypted and the server's
    name is checked."""


def database(
    settings: DatabaseSettings,
    *,
    pool_size: int = 5,
    statement_seconds: float | None = STATEMENT_SECONDS,
) -> AsyncEngine:
    """Return an engine; it connects at the first use.

    Connections are tried before use, so that a restarted server costs a reconnect, not an error.
    A statement ends after ``statement_seconds``; None for one that may take any time.
    """
    how: dict[str, Any] = {
        "timeout": CONNECT_SECONDS,
        "command_timeout": statement_seconds,
        "server_settings": _KEEPALIVES,
    }
    if settings.database_secret_arn:
        how["password"] = ManagedPassword(settings.database_secret_arn)
    if settings.database_ca:
        how["ssl"] = ssl.create_default_context(cafile=settings.database_ca)
    return create_async_engine(
        make_url(settings.database_url).set(drivername="postgresql+asyncpg"),
        pool_size=pool_size,
        pool_pre_ping=True,
        pool_recycle=300,
        connect_args=how,
    )


class Secrets(Protocol):
    """What is used of boto3's client."""

    def get_secret_value(self, **arguments: Any) -> Any:
        """Return a secret."""
        ...


class ManagedPassword:
    """Reads the password that AWS rotates, each time somebody connects.

    Args:
        arn: The secret, as RDS keeps it: JSON with ``password``.
        make_client: Makes the client, in the thread that uses it.
    """

    def __init__(self, arn: str, make_client: "Callable[[], Secrets] | None" = None) -> None:
        self._arn = arn
        self._make_client = make_client or _client
        self._client: Secrets | None = None
        self._last: str | None = None

    async def __call__(self) -> str:
        """Return the password of now; the last one that was read while the service is away.

        Raises:
            NoPassword: none could be read yet.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        try:
            self._client = self._client or self._make_client()
            answer = self._client.get_secret_value(SecretId=self._arn)
            self._last = str(json.loads(answer["SecretString"])["password"])
        except (BotoCoreError, ClientError, OSError, KeyError, ValueError) as error:
            if self._last is None:
                raise NoPassword(
                    f"the database's password can't be read from {self._arn}: "
                    f"{type(error).__name__}"
                ) from error
        return self._last


def _client() -> Secrets:
    # Imported here since it is slow to import, and only AWS needs it.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    limits = Config(
        connect_timeout=_SECRET_SECONDS,
        read_timeout=_SECRET_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    made: Any = boto3.client("secretsmanager", config=limits)
    return made
