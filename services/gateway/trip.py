"""One request while it passes through the gateway."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from services.core.connection import Connection, Headers
from services.core.errors import UpstreamError
from services.core.exchange import Budgets, Exchange, Send
from services.core.workers import Target

from .body import Body
from .directory import Route


class Reply(Protocol):
    """Brings one answer of a worker to the client."""

    @property
    def began(self) -> bool:
        """Whether the client has got anything yet, so that no other answer can be sent."""
        ...

    @property
    def status(self) -> int:
        """What the client was answered with, 0 before."""
        ...

    @property
    def first_byte_seconds(self) -> float | None:
        """When the first byte went out, from the request's arrival."""
        ...

    @property
    def sent_bytes(self) -> int:
        """How much of the answer went out."""
        ...

    @property
    def broken(self) -> UpstreamError | None:
        """What ended it after it began."""
        ...

    async def run(self, connection: Connection) -> None:
        """Pass the answer on.

        Raises:
            UpstreamError: it broke before the client got anything.
            Refused: it is one that the gateway answers in its own words.
        """
        ...


@dataclass(slots=True)
class Trip:
    """What is known of one request, for its log line and metrics."""

    path: str
    request_id: bytes
    team: str = ""
    endpoint: str = ""
    worker: str = ""
    status: int = 0
    tries: int = 0
    error: str = ""
    first_byte_seconds: float | None = None
    sent_bytes: int = 0
    stream: bool = False
    held_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request comes to, once it is read: where it goes and how it is answered."""

    route: Route
    path: bytes
    """The path at the worker, with its query."""
    headers: Headers
    budgets: Budgets
    reply: Callable[["Passage"], Reply]
    patience_seconds: float = 0.0
    """How long it waits for a place when every worker is busy; 0 answers at once."""


@dataclass(slots=True)
class Passage:
    """One request on its way to a worker."""

    plan: Plan
    place: Target
    body: Body
    send: Send
    trip: Trip
    exchange: Exchange
    added: Headers = field(default_factory=list)
    """Headers that the answer gets from us."""
    number: int = 0
    """Its place in the line: given once, at its first wait."""
    promised: bool = False
    """Whether it has waited for a worker, so that busy ones don't turn it away any more."""
    waiting: bool = False
    """Whether it is held here, and at no worker."""
