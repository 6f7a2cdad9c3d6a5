"""What a worker says to the gateway about its tasks, and asks of it."""

import asyncio
from typing import Any

import aiohttp
import structlog

from services.core.backoff import Backoff
from services.core.errors import ServiceError

_QUICK_SECONDS = 5
_WHOLE_SECONDS = 60
_OVER = frozenset({404, 409})
_HOPELESS = frozenset({400, 401, 403, 405, 413, 422})
_CONNECTIONS = 100


class PayloadGone(ServiceError):  # noqa: N818
    """What a task is to be asked isn't kept any more."""


class ResultRefused(ServiceError):  # noqa: N818
    """The gateway will never take this result."""


class GatewayClient:
    """Speaks for tasks, each with its own token; one client for the whole process.

    Args:
        url: the gateway's.
        log: the service's logger.
    """

    def __init__(self, url: str, log: structlog.typing.FilteringBoundLogger) -> None:
        self._url = url.rstrip("/")
        self._log = log
        self._session: aiohttp.ClientSession | None = None

    async def started(self, task_id: str, token: str) -> bool:
        """Say that a task begins; return False when there is nothing to do any more.

        A gateway that is away doesn't keep a task from running.
        """
        try:
            status, _ = await self._ask("POST", task_id, "started", token)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._log.warning("the gateway is away", task_id=task_id, error=type(error).__name__)
            return True
        return status not in _OVER

    async def payload(self, task_id: str, token: str) -> bytes:
        """Return what a task asks; the gateway's absence is waited out.

        Raises:
            PayloadGone: it isn't kept any more.
        """
        status, body = await self._persist("GET", task_id, "payload", token)
        if status != 200:
            raise PayloadGone(f"what was asked isn't there any more: status {status}")
        return body

    async def finish(self, task_id: str, token: str, result: dict[str, Any]) -> None:
        """Give a task's result; the gateway's absence is waited out. The first result counts.

        Raises:
            ResultRefused: it will never be taken.
        """
        status, _ = await self._persist("PUT", task_id, "result", token, result)
        if status in _HOPELESS:
            raise ResultRefused(f"the gateway refuses the result: status {status}")

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _persist(
        self, method: str, task_id: str, what: str, token: str, document: Any = None
    ) -> tuple[int, bytes]:
        backoff = Backoff()
        told = False
        while True:
            try:
                status, body = await self._ask(method, task_id, what, token, document=document)
                if status < 300 or status in _OVER or status in _HOPELESS:
                    return status, body
                problem = f"status {status}"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                problem = type(error).__name__
            if not told:
                self._log.warning("the gateway is away", task_id=task_id, error=problem)
                told = True
            await backoff.wait()

    async def _ask(
        self,
        method: str,
        task_id: str,
        what: str,
        token: str,
        *,
        document: Any = None,
    ) -> tuple[int, bytes]:
        seconds = _QUICK_SECONDS if what == "started" else _WHOLE_SECONDS
        async with (
            asyncio.timeout(seconds),
            self._client().request(
                method,
                f"{self._url}/internal/tasks/{task_id}/{what}",
                headers={"authorization": f"Bearer {token}"},
                json=document,
                allow_redirects=False,
            ) as answer,
        ):
            return answer.status, await answer.read()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=15),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session
