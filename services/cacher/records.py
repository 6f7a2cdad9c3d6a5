"""The table of endpoints, written by the one active cacher."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.core.records import Endpoint

from .errors import LeadershipLost
from .registrations import Claim

DECLARED = "declared"
_LOCK = 0x6C6C6D63  # any number, the same for every cacher of the platform


@dataclass(frozen=True)
class Row:
    """An endpoint as the table should hold it."""

    claim: Claim
    ready_workers: int

    def values(self) -> dict[str, Any]:
        """Return the columns that the cacher decides."""
        registration = self.claim.registration
        waiting = self.ready_workers == 0
        return {
            "team": self.claim.team,
            "namespace": self.claim.namespace,
            "registration": registration.model_dump(mode="json"),
            "status": "pending" if waiting else "ready",
            "status_reason": "no worker is ready" if waiting else "",
            "source": DECLARED,
            "stack": registration.stack,
        }


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

    async def owners(self) -> dict[str, str]:
        """Return the namespace that owns each name."""
        rows = await self._connection.execute(select(Endpoint.name, Endpoint.namespace))
        return {row.name: row.namespace for row in rows}

    async def apply(self, wanted: dict[str, Row]) -> list[str]:
        """Make the declared endpoints equal to ``wanted``; return the names that changed."""
        table = Endpoint.__table__
        result = await self._connection.execute(select(table))
        have = {row["name"]: dict(row) for row in result.mappings().all()}
        changed: list[str] = []
        for name, row in wanted.items():
            values = row.values()
            now = have.get(name)
            if now is not None and all(now[key] == value for key, value in values.items()):
                continue
            statement = insert(Endpoint).values(name=name, **values)
            await self._connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[Endpoint.name], set_={**values, "updated_at": func.now()}
                )
            )
            changed.append(name)
        gone = [n for n, row in have.items() if row["source"] == DECLARED and n not in wanted]
        if gone:
            await self._connection.execute(delete(Endpoint).where(Endpoint.name.in_(gone)))
        return sorted(changed + gone)


DATABASE_ERRORS = (SQLAlchemyError, OSError, TimeoutError)
