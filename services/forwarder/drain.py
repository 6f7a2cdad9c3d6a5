"""Draining: asked for by SIGTERM (the pod ends) or by the model container's preStop hook.

The hook's answer comes only when the last request is done, so the model isn't stopped under an
open stream. The hook also runs when the model's container alone is restarted; then the drain ends
with the restart, while after SIGTERM it never does.
"""

import asyncio

from services.core.server import Lifecycle


class Drain:
    """Whether new requests are taken.

    Args:
        lifecycle: counts the open requests and knows of SIGTERM.
        linger_seconds: how long requests are still taken after a drain began, until every router
            knows of it.
        limit_seconds: how long open requests are waited for.
        recovery_seconds: how long after an answered hook the model's container has to stop.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        *,
        linger_seconds: float,
        limit_seconds: float,
        recovery_seconds: float = 30,
    ) -> None:
        self._lifecycle = lifecycle
        self._linger_seconds = linger_seconds
        self._limit_seconds = limit_seconds
        self._recovery_seconds = recovery_seconds
        self._hooks = 0
        self._began: float | None = None

    @property
    def active(self) -> bool:
        """Whether the worker should be seen as not ready."""
        return self._lifecycle.terminating or self._hooks > 0

    @property
    def refusing(self) -> bool:
        """Whether new requests are refused: once the linger is over."""
        if not self.active:
            return False
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
        return now - self._began >= self._linger_seconds

    async def hook(self) -> bool:
        """Drain for the model's preStop hook; return whether every request was done in time."""
        loop = asyncio.get_running_loop()
        self._hooks += 1
        if self._began is None:
            self._began = loop.time()
        try:
            await asyncio.sleep(max(0.0, self._began + self._linger_seconds - loop.time()))
            return await self._lifecycle.idle(self._limit_seconds)
        finally:
            loop.call_later(self._recovery_seconds, self._hook_over)

    def begin(self) -> None:
        """Start the linger's clock, at SIGTERM."""
        if self._began is None:
            self._began = asyncio.get_running_loop().time()

    def _hook_over(self) -> None:
        self._hooks -= 1
        if not self.active:
            self._began = None
