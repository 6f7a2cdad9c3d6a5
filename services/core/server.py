"""Running an ASGI application until SIGTERM, and ending without dropping a request."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import structlog
import uvicorn

from .protocol import bounded
from .settings import ServerSettings
from .sockets import listener

_KEEP_ALIVE_SECONDS = 75
_POLL_SECONDS = 0.05


class Lifecycle:
    """Where a process is in its life, and how many requests it works on."""

    def __init__(self) -> None:
        self.draining = False
        self.terminating = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = asyncio.Event()

    def enter(self) -> None:
        """Count a request in."""
        self.in_flight += 1
        self._idle.clear()

    def leave(self) -> None:
        """Count a request out."""
        self.in_flight -= 1
        if self.in_flight == 0:
            self._idle.set()

    async def idle(self, limit_seconds: float) -> bool:
        """Wait until no request is left; return whether that came within the limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_seconds):
                await self._idle.wait()
        return self.in_flight == 0


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:  # ours do more than stop
        yield


class Server:
    """Serves one application.

    Args:
        app: the ASGI application.
        settings: where to listen, and how long draining may take.
        lifecycle: shared with the application, which reads and counts there.
        log: the service's logger.
        listen_while_draining: whether new requests are still answered (with a refusal) until the
            last open one is done; otherwise the listening socket closes after the linger.
    """

    def __init__(
        self,
        app: Any,
        settings: ServerSettings,
        lifecycle: Lifecycle,
        log: structlog.typing.FilteringBoundLogger,
        *,
        listen_while_draining: bool = False,
    ) -> None:
        self._settings = settings
        self._lifecycle = lifecycle
        self._log = log
        self._listen_while_draining = listen_while_draining
        config = uvicorn.Config(
            app,
            http=bounded(settings.head_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, int(settings.drain_seconds)),
        )
        self._uvicorn = _Uvicorn(config)
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve until a signal came and the open requests are done."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        sock = listener(self._settings.host, self._settings.port)
        # Before it is told: whoever reads that we listen may connect at once.
        sock.listen(self._uvicorn.config.backlog)
        self._log.info("listening", host=self._settings.host, port=sock.getsockname()[1])
        await self._uvicorn.serve(sockets=[sock])
        self._log.info("stopped")

    def _on_signal(self, number: signal.Signals) -> None:
        if self._lifecycle.terminating:
            self._log.warning("second signal, stopping at once", signal=number.name)
            self._uvicorn.config.timeout_graceful_shutdown = 0
            self._uvicorn.should_exit = True
            return
        self._lifecycle.terminating = True
        self._lifecycle.draining = True
        self._lifecycle.stopping.set()
        self._log.info("draining", signal=number.name, in_flight=self._lifecycle.in_flight)
        task = asyncio.get_running_loop().create_task(self._drain())
        self._tasks.add(task)

    async def _drain(self) -> None:
        await asyncio.sleep(self._settings.linger_seconds)
        if self._listen_while_draining:
            done = await self._lifecycle.idle(self._settings.drain_seconds)
            if not done:
                self._log.warning("requests left at the limit", in_flight=self._lifecycle.in_flight)
                self._uvicorn.config.timeout_graceful_shutdown = 1
        self._uvicorn.should_exit = True


def run(main: Any) -> None:
    """Run a service's main coroutine on uvloop."""
    import uvloop  # noqa: PLC0415  (tools that only import our modules don't need it)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
