"""The worker's Celery side: takes tasks while the model is healthy, and settles each one.

Celery receives, decodes and hands each task to a thread, which waits for the coroutine that
carries it out on the forwarder's loop. Whether a task is done, put back or dead is told to the
broker here: Celery's own acknowledgement only frees the place for the next task.
"""

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from celery import Celery
from celery.worker import WorkController
from celery.worker.consumer import Consumer
from celery.worker.request import Request

from services.core.broker.base import (
    TASK_NAME,
    Broker,
    BrokerAway,
    BrokerUnfit,
    Consuming,
    Lease,
    TaskQueue,
)
from services.core.broker.make import make_broker

from .leases import LeaseKeeper
from .settings import ForwarderSettings
from .tasks import Task, TaskRunner, Verdict

_AGAIN_SECONDS = 1.0
_SETTLE_TRIES = 3
_SETTLE_SECONDS = 10.0
_LONGEST_POLL_SECONDS = 7.0
_LOOK_SECONDS = 0.02


class AsyncWorker:
    """Takes tasks from the endpoint's queue.

    Args:
        settings: the forwarder's.
        runner: carries out a task, on the forwarder's loop.
        may_take: whether the model is healthy and the worker isn't ending; asked from any thread.
        log: the service's logger.
    """

    def __init__(
        self,
        settings: ForwarderSettings,
        runner: TaskRunner,
        may_take: Callable[[], bool],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._runner = runner
        self._ready = may_take
        self._log = log
        self._broker: Broker = make_broker(settings.broker_settings)
        self._queue = TaskQueue(settings.team, settings.endpoint, settings.queue)
        self._keeper = LeaseKeeper(self._broker, self._queue, settings.lease_seconds, log)
        self._loop = asyncio.get_running_loop()
        self._running: set[concurrent.futures.Future[Verdict]] = set()
        self._stopping = threading.Event()
        self._controller: WorkController | None = None
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)
        self.connected = False

    def start(self) -> None:
        """Begin to take tasks, whenever the model is healthy."""
        self._thread.start()

    async def stop(self) -> None:
        """Put back at once what isn't done, and end."""
        self._stopping.set()
        for future in list(self._running):
            future.cancel()
        await asyncio.to_thread(self._end)
        await self._runner.close()

    def _end(self) -> None:
        deadline = time.monotonic() + _SETTLE_SECONDS
        if self._controller is not None:
            self._controller.signal_consumer_close()
        self._thread.join(_LONGEST_POLL_SECONDS)
        while self._keeper.held and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        self._keeper.stop()
        self._broker.close()

    # --- the consumer's thread ----------------------------------------------------------------

    def _run(self) -> None:
        if not self._found_fit():
            return
        self.connected = True
        self._keeper.start()
        while not self._stopping.is_set():
            try:
                self._consume()
            except Exception:
                self._log.exception("taking tasks failed")
            # What was received and never begun would be kept from everybody.
            for lease in self._keeper.forget():
                self._settle(lease, Verdict.RELEASE)
            self._stopping.wait(_AGAIN_SECONDS)

    def _found_fit(self) -> bool:
        """Wait for the broker; a broker that will never do leaves the worker unready."""
        told = False
        while not self._stopping.is_set():
            try:
                self._broker.check()
            except BrokerAway as error:
                if not told:
                    self._log.warning("the broker is away", error=str(error))
                told = True
            except BrokerUnfit as error:
                self._log.error("the broker can't be used", problem=str(error))
                return False
            else:
                return True
            self._stopping.wait(_AGAIN_SECONDS)
        return False

    def _consume(self) -> None:
        """Take tasks until the worker ends; Celery itself comes back after an outage."""
        app = self._application()
        controller = app.WorkController(
            pool="threads",
            use_eventloop=False,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            hostname=f"{self._settings.endpoint}@worker",
        )
        self._controller = controller
        try:
            if not self._stopping.is_set():
                self._log.info("taking tasks", queue=self._queue.name)
                controller.start()
        finally:
            controller.pool.stop()  # waits for the tasks that run

    def _application(self) -> Celery:
        app = Celery("llm-platform", set_as_current=False)
        consuming = Consuming(
            queue=self._queue,
            lease_seconds=self._settings.lease_seconds,
            concurrency=self._settings.max_concurrency,
            limit_seconds=self._settings.request_timeout_seconds,
            may_take=self._may_take,
        )
        app.conf.update(self._broker.settings_for(consuming))
        app.conf.worker_consumer = self._consumer_class()

        def predict(task: Any, **kwargs: Any) -> None:
            self._work(task.request.lease, kwargs)

        app.task(predict, name=TASK_NAME, bind=True, Request=self._request_class())
        app.finalize()
        return app

    def _may_take(self) -> bool:
        return self._ready() and self._keeper.held < self._settings.max_concurrency

    def _request_class(self) -> type[Request]:
        """Return Celery's request, whose lease is kept from the moment it is received."""
        broker, keeper = self._broker, self._keeper

        class LeasedRequest(Request):
            def __init__(self, message: Any, **options: Any) -> None:
                super().__init__(message, **options)
                lease = broker.lease_of(message)
                self._request_dict["lease"] = lease
                keeper.take(lease)

        return LeasedRequest

    def _consumer_class(self) -> type[Consumer]:
        """Return Celery's consumer, that writes no message into the log.

        What it can't read is nobody's task, and is moved to where people may look at it.
        """
        unreadable = self._unreadable

        class QuietConsumer(Consumer):
            def on_unknown_message(self, body: Any, message: Any) -> None:
                unreadable(message)

            def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
                unreadable(message)

            def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
                unreadable(message)

            def on_decode_error(self, message: Any, exc: Exception) -> None:
                unreadable(message)

        return QuietConsumer

    def _unreadable(self, message: Any) -> None:
        lease = self._broker.lease_of(message)
        self._log.error("a message can't be read", task_id=lease.task_id)
        self._settle(lease, Verdict.DEAD_LETTER)
        message.ack()

    # --- a task's thread ----------------------------------------------------------------------

    def _work(self, lease: Lease, kwargs: Mapping[str, Any]) -> None:
        try:
            verdict = self._verdict(lease, kwargs)
            if verdict is not None:
                self._settle(lease, verdict)
        finally:
            self._keeper.drop(lease)

    def _verdict(self, lease: Lease, kwargs: Mapping[str, Any]) -> Verdict | None:
        """Return what is to become of a task; None leaves it to the end of its lease."""
        if self._stopping.is_set() or not self._ready():
            return Verdict.RELEASE
        try:
            task = Task.read(kwargs, lease.deliveries, self._settings.predict_path)
        except (KeyError, TypeError, ValueError) as error:
            self._log.error(
                "a task can't be read", task_id=lease.task_id, error=type(error).__name__
            )
            return Verdict.DEAD_LETTER
        future = asyncio.run_coroutine_threadsafe(self._runner.run(task), self._loop)
        self._running.add(future)
        try:
            if self._stopping.is_set():
                future.cancel()
            return future.result()
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            return Verdict.RELEASE
        except Exception:
            self._log.exception("a task failed in the worker", task_id=lease.task_id)
            return None
        finally:
            self._running.discard(future)

    def _settle(self, lease: Lease, verdict: Verdict) -> None:
        """Tell the broker; if it stays away, the task comes again and its result counts once."""
        settle = {
            Verdict.ACKNOWLEDGE: self._broker.acknowledge,
            Verdict.RELEASE: self._broker.release,
            Verdict.DEAD_LETTER: self._broker.dead_letter,
        }[verdict]
        for number in range(1, _SETTLE_TRIES + 1):
            try:
                settle(lease)
            except BrokerAway as error:
                if number == _SETTLE_TRIES:
                    problem = str(error)
                    self._log.warning(
                        "a task isn't settled", task_id=lease.task_id, problem=problem
                    )
                    return
                time.sleep(_AGAIN_SECONDS)
            else:
                return
