"""Asking the model for a task: one request, its whole answer."""

from dataclasses import dataclass

from services.core.errors import ServiceError
from services.core.exchange import Budgets, Exchange
from services.core.pool import Address, Pool
from services.core.relay import request_head


class AnswerTooLarge(ServiceError):  # noqa: N818
    """The answer is longer than results may be."""


@dataclass(frozen=True)
class Answer:
    """What the model said."""

    status: int
    body: bytes


class ModelClient:
    """Asks the model beside us.

    Args:
        pool: connections to it.
        address: where it listens.
        max_answer_bytes: the longest answer that is read.
    """

    def __init__(self, pool: Pool, address: Address, max_answer_bytes: int) -> None:
        self._pool = pool
        self._address = address
        self._host = str(address).encode()
        self._max_answer_bytes = max_answer_bytes

    async def post(self, path: str, body: bytes, request_id: str, seconds: float) -> Answer:
        """Post JSON and return the whole answer.

        Raises:
            ConnectFailed: the model takes no connection.
            UpstreamError: the answer broke off, or took longer than ``seconds``.
            AnswerTooLarge: it is longer than allowed.
        """
        exchange = Exchange(Budgets(seconds, seconds, seconds))
        connection = await self._pool.acquire(self._address)
        try:
            exchange.carry(connection)
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
                (b"x-request-id", request_id.encode()),
            ]
            keep = self._pool.keeps_connections
            head = request_head(b"POST", path.encode(), self._host, headers, keep=keep)
            connection.start(head, head_only=False)
            await connection.write(body)
            await exchange.head(connection)
            parts: list[bytes] = []
            size = 0
            while piece := await exchange.read(connection):
                parts.append(piece)
                size += len(piece)
                if size > self._max_answer_bytes:
                    limit = self._max_answer_bytes
                    raise AnswerTooLarge(f"the answer is longer than {limit} bytes")
            return Answer(connection.status, b"".join(parts))
        finally:
            exchange.close()
            self._pool.release(self._address, connection)
