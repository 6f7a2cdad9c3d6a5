"""The table of endpoints, written by the one active cacher."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, extract, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.core.records import ABSENT, Endpoint

from .errors import Invalid, LeadershipLost
from .registrations import Claim, Owner

DECLARED = "declared"
_LOCK = 0x6C6C6D63  # any number, the same for every cacher of the platform


_ABSENT = {"status": ABSENT, "status_reason": "its registration is gone"}
_NOT_OURS = frozenset({"name", "created_at", "updated_at"})
_ROW_FAULTS = frozenset({"22", "23", "54"})
"""Classes of SQLSTATE: wrong data, a constraint, a limit of size."""


@dataclass(frozen=True)
class Row:
    """An endpoint as the table should hold it."""

    claim: Claim
    ready_workers: int

    def values(self) -> dict[str, Any]:
        """Return the columns that the cacher decides."""
        registration = self.claim.registration
        return {
            "team": self.claim.team,
            "namespace": self.claim.namespace,
            "registration": registration.model_dump(mode="json"),
            **_status(self.ready_workers),
            "source": DECLARED,
            "stack": registration.stack,
        }


@dataclass(frozen=True)
class Outcome:
    """What became of the rows."""

    changed: list[str]
    refused: dict[str, Invalid]
    """Endpoints whose row the database doesn't take; their last record stays."""


class Records:
    """Reads and writes endpoints through the one connection that holds the lock.

    A connection that breaks loses the lock and the ability to write at the same moment, so two
    cachers never write at once.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @classmethod
    async def lead(cls, engine: AsyncEngine) -> "Records":
        """Become the active cacher.

        Raises:
            LeadershipLost: another one is.
        """
        connection = await engine.connect()
        try:
            connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            if await connection.scalar(text(f"SELECT pg_try_advisory_lock({_LOCK})")):
                return cls(connection)
        except BaseException:
            await connection.invalidate()
            raise
        await connection.close()
        raise LeadershipLost("another cacher is active")

    async def close(self) -> None:
        """Give the lock back by closing its connection for good."""
        try:
            await self._connection.invalidate()
        finally:
            await self._connection.close()

    async def owners(self, release_seconds: float) -> dict[str, Owner]:
        """Return whom each name belongs to; it is released after so long an absence."""
        age = extract("epoch", func.now() - Endpoint.updated_at)  # of an absent one: since it went
        released = (Endpoint.status == ABSENT) & (age >= release_seconds)
        columns = (Endpoint.name, Endpoint.namespace, released.label("released"))
        rows = await self._connection.execute(select(*columns))
        return {row.name: Owner(row.namespace, row.released) for row in rows}

    async def apply(
        self, wanted: dict[str, Row], kept: dict[str, int], owners: Mapping[str, Owner]
    ) -> Outcome:
        """Bring the declared endpoints to what they should be.

        Args:
            wanted: the endpoints in force.
            kept: ready workers of those whose last record stays.
            owners: as ``owners`` told before; the released names that nobody wants are deleted.
        """
        table = Endpoint.__table__
        result = await self._connection.execute(select(table))
        have = {row["name"]: dict(row) for row in result.mappings().all()}
        outcome = Outcome([], {})
        for name, row in wanted.items():
            try:
                if await self._write(name, have.get(name), row.values()):
                    outcome.changed.append(name)
            except DBAPIError as error:
                if not _blames_the_row(error):
                    raise
                reason = str(error.orig).splitlines()[0]
                outcome.refused[name] = Invalid(f"the database refuses it: {reason}")
        for name, row in have.items():
            if row["source"] != DECLARED or name in wanted:
                continue
            status = _status(kept[name]) if name in kept else _ABSENT
            owner = owners.get(name)
            if status is _ABSENT and owner is not None and owner.released:
                await self._connection.execute(delete(Endpoint).where(Endpoint.name == name))
                outcome.changed.append(name)
            elif await self._write(name, row, {**_decided(row), **status}):
                outcome.changed.append(name)
        outcome.changed.sort()
        return outcome

    async def _write(self, name: str, have: dict[str, Any] | None, values: dict[str, Any]) -> bool:
        """Make the row have these values; return whether it had others."""
        if have is not None and all(have[key] == value for key, value in values.items()):
            return False
        statement = insert(Endpoint).values(name=name, **values)
        await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[Endpoint.name], set_={**values, "updated_at": func.now()}
            )
        )
        return True


def _status(ready_workers: int) -> dict[str, str]:
    waiting = ready_workers == 0
    return {
        "status": "pending" if waiting else "ready",
        "status_reason": "no worker is ready" if waiting else "",
    }


def _decided(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _NOT_OURS}


def _blames_the_row(error: DBAPIError) -> bool:
    """Whether another row would be taken: the values are at fault, not the connection."""
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return state[:2] in _ROW_FAULTS or isinstance(error, DataError)


DATABASE_ERRORS = (SQLAlchemyError, OSError, TimeoutError)
