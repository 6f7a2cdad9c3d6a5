"""Whether the model's server answers: asked again and again, since readiness follows it."""

import asyncio

import structlog

from services.core.errors import UpstreamError
from services.core.pool import Address, Pool
from services.core.relay import request_head


class ModelHealth:
    """Polls the model's health route."""

    def __init__(
        self,
        pool: Pool,
        address: Address,
        path: str,
        log: structlog.typing.FilteringBoundLogger,
        *,
        timeout_seconds: float,
        failures: int,
        dead_seconds: float,
    ) -> None:
        self._pool = pool
        self._address = address
        self._path = path
        self._log = log
        self._timeout_seconds = timeout_seconds
        self._allowed_failures = failures
        self._failures = failures
        self._dead_seconds = dead_seconds
        self._dead_from: float | None = None
        self._was_healthy = False
        self.healthy = False
        self.checks = 0

    @property
    def dead(self) -> bool:
        """Whether nothing but a restart will help: it was healthy, and nothing comes any more."""
        loop = asyncio.get_running_loop()
        return self._dead_from is not None and loop.time() >= self._dead_from

    @property
    def answers(self) -> bool:
        """Whether the last check was answered well; a healthy model may have missed a few."""
        return self.checks > 0 and self._failures == 0

    def heard(self) -> None:
        """Take a byte of an answer for a sign of life."""
        if self._dead_from is not None:
            self._dead_from = asyncio.get_running_loop().time() + self._dead_seconds

    def restarted(self) -> None:
        """Forget what was: the model that starts next has all its time to load."""
        self._was_healthy = False
        self._dead_from = None

    async def run(self, every_seconds: float) -> None:
        """Poll until cancelled."""
        while True:
            self._take(await self._ask())
            await asyncio.sleep(every_seconds)

    def _take(self, problem: str | None) -> None:
        self.checks += 1
        self._failures = 0 if problem is None else self._failures + 1
        healthy = self._failures == 0 or (self.healthy and self._failures < self._allowed_failures)
        if healthy != self.healthy:
            self._log.info("the model is " + ("ready" if healthy else "not ready"), problem=problem)
        self.healthy = healthy
        if problem is None:
            self._was_healthy = True
            self._dead_from = None
        elif self._was_healthy and self._dead_from is None:
            self._dead_from = asyncio.get_running_loop().time() + self._dead_seconds

    async def _ask(self) -> str | None:
        """Return None, or what is wrong."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                connection = await self._pool.acquire(self._address)
                try:
                    host = str(self._address).encode()
                    head = request_head(b"GET", self._path.encode(), host, [], keep=False)
                    connection.start(head, head_only=False)
                    await connection.head()
                    status = connection.status
                finally:
                    self._pool.release(self._address, connection)
        except TimeoutError:
            return f"no answer within {self._timeout_seconds:g} s"
        except UpstreamError as error:
            return str(error)
        return None if 200 <= status < 300 else f"status {status}"
