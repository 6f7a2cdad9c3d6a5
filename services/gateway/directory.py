"""Keys and endpoints in memory, so that an outage of the database never stops a request."""

import asyncio
import time
from dataclasses import dataclass

import structlog
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

from components.domain.registration import Access, EndpointType, Registration
from services.core import keys
from services.core.backoff import Backoff
from services.core.records import ABSENT, ApiKey, Endpoint

from . import schema
from .errors import InvalidKey, UnknownModel

ADMIN = "admin"


@dataclass(frozen=True)
class Caller:
    """Who a key stands for."""

    team: str
    admin: bool
    expires_at: float | None


@dataclass(frozen=True)
class Route:
    """An endpoint as a request needs it."""

    name: str
    team: str
    namespace: str
    created: int
    registration: Registration


class Directory:
    """Looks keys and endpoints up; refreshed as a whole, so what it says is always consistent."""

    def __init__(self, engine: AsyncEngine, log: structlog.typing.FilteringBoundLogger) -> None:
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)
        self._log = log
        self._callers: dict[str, Caller] = {}
        self._routes: dict[str, Route] = {}
        self._wanted = asyncio.Event()
        self.loaded_at: float | None = None

    @property
    def loaded(self) -> bool:
        """Whether there was a first load, from a database of a fitting version."""
        return self.loaded_at is not None

    def caller(self, key: bytes | None) -> Caller:
        """Return who the key stands for.

        Raises:
            InvalidKey: none, unknown, expired or revoked.
        """
        if not key:
            raise InvalidKey("No API key was given: send it as 'Authorization: Bearer <key>'.")
        caller = self._callers.get(keys.key_hash(key))
        if caller is None or (caller.expires_at is not None and caller.expires_at < time.time()):
            raise InvalidKey("The API key isn't valid.")
        return caller

    def route(self, model: str, caller: Caller) -> Route:
        """Return the endpoint that clients call ``model``.

        Raises:
            UnknownModel: there is none that this caller may know of.
        """
        route = self._routes.get(model)
        if route is None or not _may_call(caller, route):
            raise UnknownModel(
                f"The model {model[:100]!r} does not exist or you have no access to it."
            )
        return route

    def endpoint(self, name: str, caller: Caller) -> Route:
        """Return an endpoint of any type by its id, which is its name.

        Raises:
            UnknownModel: there is none that this caller may know of.
        """
        route = self._routes.get(name)
        if route is None or not _may_know(caller, route):
            raise UnknownModel(
                f"The endpoint {name[:100]!r} does not exist or you have no access to it."
            )
        return route

    def routes(self, caller: Caller) -> list[Route]:
        """Return the endpoints that this caller may call by OpenAI's API, by name."""
        mine = (route for route in self._routes.values() if _may_call(caller, route))
        return sorted(mine, key=lambda route: route.name)

    def served(self) -> list[Route]:
        """Return all endpoints whose requests pass through the gateway."""
        async_type = EndpointType.ASYNC
        return [it for it in self._routes.values() if it.registration.type is not async_type]

    def refresh(self) -> None:
        """Ask for a load soon."""
        self._wanted.set()

    async def run(self, every_seconds: float) -> None:
        """Keep loading until cancelled: when asked to, and at least every so often."""
        backoff = Backoff(limit_seconds=5)
        while True:
            self._wanted.clear()
            try:
                await self.load()
            except (SQLAlchemyError, OSError, TimeoutError, schema.OldSchema) as error:
                self._log.warning("keys and endpoints can't be loaded", error=_brief(error))
                await backoff.wait()
                continue
            backoff.reset()
            try:
                async with asyncio.timeout(every_seconds):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def load(self) -> None:
        """Read everything once.

        Raises:
            OldSchema: the migrations of this version aren't applied.
        """
        async with self._sessions() as session:
            await schema.check(session)
            api_keys = (
                await session.scalars(select(ApiKey).where(ApiKey.revoked_at.is_(None)))
            ).all()
            endpoints = (
                await session.scalars(select(Endpoint).where(Endpoint.status != ABSENT))
            ).all()
        self._callers = {key.hash: _caller(key) for key in api_keys}
        self._routes = {route.name: route for record in endpoints if (route := self._route(record))}
        if not self.loaded:
            self._log.info("loaded", keys=len(self._callers), endpoints=len(self._routes))
        self.loaded_at = time.time()

    def _route(self, record: Endpoint) -> Route | None:
        try:
            registration = Registration.from_document(record.registration)
        except ValidationError as error:  # written by another version: skip it, serve the others
            self._log.error("endpoint can't be read", endpoint=record.name, error=str(error))
            return None
        created = int(record.created_at.timestamp())
        return Route(record.name, record.team, record.namespace, created, registration)


def _caller(record: ApiKey) -> Caller:
    expires_at = record.expires_at.timestamp() if record.expires_at else None
    return Caller(record.team, record.role == ADMIN, expires_at)


def _may_call(caller: Caller, route: Route) -> bool:
    registration = route.registration
    if not registration.openai or registration.type is EndpointType.ASYNC:
        return False
    return _may_know(caller, route)


def _may_know(caller: Caller, route: Route) -> bool:
    everyone = route.registration.access is Access.EVERYONE
    return caller.admin or caller.team == route.team or everyone


def _brief(error: Exception) -> str:
    """Say what happened without the statement and its parameters."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
