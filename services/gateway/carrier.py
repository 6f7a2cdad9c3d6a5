"""Carrying a request to a worker, and its answer back; holding it while there is no worker."""

import structlog

from services.core.connection import Connection
from services.core.errors import (
    ClientGone,
    ConnectFailed,
    OutOfTime,
    UpstreamError,
    WorkerVanished,
)
from services.core.exchange import Exchange
from services.core.pool import Address, Pool
from services.core.relay import REFUSED, header, request_head

from .errors import AllBusy, NoWorker, Refused, TimedOut, WorkerLost
from .measures import Measures
from .routing import Routing
from .trip import Passage
from .waiting_room import Outcome, WaitingRoom

_SMALL_BODY_BYTES = 64 * 1024
_FULL = b"full"
_DRAINING = b"draining"


class Carrier:
    """Offers requests to workers until one takes them.

    Args:
        routing: who takes requests.
        room: where requests wait.
        pool: the connections to workers.
        measures: told of each refusal.
        max_tries: how many workers a request is offered to before it waits or is refused.
        log: where unreachable workers are told.
    """

    def __init__(
        self,
        *,
        routing: Routing,
        room: WaitingRoom,
        pool: Pool,
        measures: Measures,
        max_tries: int,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._routing = routing
        self._room = room
        self._pool = pool
        self._measures = measures
        self._max_tries = max_tries
        self._log = log

    async def carry(self, passage: Passage) -> None:
        """Carry one request to its end.

        Raises:
            Refused: it has no answer of a worker, and the client has got nothing yet.
            ClientGone: nobody is left to answer.
        """
        try:
            await self._until_taken(passage)
        except UpstreamError as error:
            raise refusal_of(error) from error
        finally:
            self._room.over(passage)

    async def _until_taken(self, passage: Passage) -> None:
        """Offer it, and wait between, until a worker takes it; refuse it when none does in time."""
        outcome = self._room.outlook(passage) or await self._offer(passage)
        while outcome is not Outcome.TAKEN:
            if not await self._room.wait(passage, outcome):
                raise _given_up(passage, outcome)
            outcome = await self._offer(passage)

    async def _offer(self, passage: Passage) -> Outcome:
        """Offer the request to one worker after the other."""
        tried: list[Address] = []
        outcome = Outcome.NONE
        while len(tried) < self._max_tries:
            worker = self._routing.pick(passage.plan.route, tried)
            if worker is None:
                break
            tried.append(worker.address)
            worker.exchanges.add(passage.exchange)
            refused: bytes | None = None
            try:
                refused = await self._try(worker.address, passage)
            except ConnectFailed as error:
                self._log.warning(
                    "worker can't be reached", worker=passage.trip.worker, error=str(error)
                )
                refused = b"unreachable"
            finally:
                worker.exchanges.discard(passage.exchange)
                if refused is None:  # its place is free again, however it ended
                    self._room.freed(passage.place)
            if refused is None:
                return Outcome.TAKEN
            self._measures.retry(passage.place[1], refused)
            if refused == _FULL:
                outcome = Outcome.BUSY
            elif refused == _DRAINING:
                worker.avoid()
                self._pool.drop(worker.address)
        return outcome

    async def _try(self, address: Address, passage: Passage) -> bytes | None:
        """Send the request to one worker; return why it was refused, or None when it is done."""
        passage.trip.worker = str(address)
        passage.trip.tries += 1
        connection = await self._pool.acquire(address)
        try:
            passage.exchange.carry(connection)
            self._room.at_worker(passage)
            await self._send_request(connection, passage)
            await passage.exchange.head(connection)
            refused = header(connection.headers, REFUSED)
            if refused is not None:
                await self._discard(connection, passage.exchange)
                return refused
            passage.body.drop()  # it is a worker's now: nobody is tried after it
            await self._answer(connection, passage)
            return None
        finally:
            passage.exchange.let_go()
            self._pool.release(address, connection)

    async def _send_request(self, connection: Connection, passage: Passage) -> None:
        host = passage.trip.worker.encode()
        keep = self._pool.keeps_connections
        plan = passage.plan
        head = request_head(b"POST", plan.path, host, plan.headers, keep=keep)
        content = passage.body.data
        if len(content) <= _SMALL_BODY_BYTES:
            connection.start(head + content, head_only=False)
        else:
            connection.start(head, head_only=False)
            await connection.write(content)

    async def _discard(self, connection: Connection, exchange: Exchange) -> None:
        while await exchange.read(connection):
            pass

    async def _answer(self, connection: Connection, passage: Passage) -> None:
        trip = passage.trip
        reply = passage.plan.reply(passage)
        try:
            await reply.run(connection)
        finally:
            if reply.began:
                trip.status = reply.status
            trip.first_byte_seconds = reply.first_byte_seconds
            trip.sent_bytes = reply.sent_bytes
            if reply.broken is not None:
                trip.error = type(reply.broken).__name__


def _given_up(passage: Passage, outcome: Outcome) -> Refused:
    name = passage.place[1]
    if passage.promised:
        seconds = passage.trip.held_seconds
        return NoWorker(f"No worker of {name!r} took the request within {seconds:.0f} s.")
    if outcome is Outcome.BUSY:
        return AllBusy(f"Every worker of {name!r} is busy; try again shortly.")
    return NoWorker(f"The model {name!r} has no worker that takes requests right now.")


def refusal_of(error: UpstreamError) -> Refused:
    """Return how a failure on the way is answered.

    Raises:
        ClientGone: it is that nobody is left to answer.
    """
    match error:
        case ClientGone():
            raise error
        case OutOfTime():
            return TimedOut(f"The request was ended: {error}.")
        case WorkerVanished():
            lost = WorkerLost("The worker was removed while it worked on the request.")
            lost.status = 503
            return lost
        case _:
            return WorkerLost(f"The worker failed: {error}.")
