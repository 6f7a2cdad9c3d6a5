"""Keys that the Pulumi program declares: mounted files, brought into the table as hashes."""

import asyncio
from pathlib import Path

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

from services.core import keys
from services.core.backoff import Backoff
from services.core.records import ApiKey

from . import schema
from .directory import ADMIN, Directory

_LOOK_SECONDS = 2
_SHORTEST_KEY = 16


class DeclaredKeys:
    """Keeps the table's declared keys equal to the files, without ever storing a key."""

    def __init__(
        self,
        folder: Path,
        engine: AsyncEngine,
        directory: Directory,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._folder = folder
        self._sessions = async_sessionmaker(engine)
        self._directory = directory
        self._log = log
        self._applied: dict[str, ApiKey] | None = None
        self.applied = False

    async def run(self) -> None:
        """Apply the files at start-up and at every change, until cancelled."""
        backoff = Backoff(limit_seconds=5)
        while True:
            try:
                await self.apply()
            except (SQLAlchemyError, OSError, TimeoutError, schema.OldSchema) as error:
                self._log.warning("declared keys can't be applied", error=type(error).__name__)
                await backoff.wait()
                continue
            backoff.reset()
            await asyncio.sleep(_LOOK_SECONDS)

    async def apply(self) -> None:
        """Apply the files if they differ from what was applied last."""
        declared = await asyncio.to_thread(self._read)
        if not declared or (self._applied is not None and declared.keys() == self._applied.keys()):
            self.applied = True
            return
        async with self._sessions.begin() as session:
            await schema.check(session)
            for key in declared.values():
                values = {
                    "prefix": key.prefix,
                    "team": key.team,
                    "role": key.role,
                    "declared": True,
                }
                statement = insert(ApiKey).values(hash=key.hash, **values)
                await session.execute(
                    statement.on_conflict_do_update(
                        index_elements=[ApiKey.hash], set_={**values, "revoked_at": None}
                    )
                )
            gone = ApiKey.declared & ApiKey.revoked_at.is_(None) & ApiKey.hash.not_in(declared)
            revoked = (await session.scalars(select(ApiKey.team).where(gone))).all()
            await session.execute(update(ApiKey).where(gone).values(revoked_at=func.now()))
        self._applied = declared
        self.applied = True
        self._directory.refresh()
        teams = sorted(key.team for key in declared.values())
        self._log.info("declared keys applied", teams=teams, revoked=sorted(revoked))

    def _read(self) -> dict[str, ApiKey]:
        # An absent or empty folder is a missing mount rather than a wish to revoke every key.
        declared: dict[str, ApiKey] = {}
        if not self._folder.is_dir():
            return declared
        for file in sorted(self._folder.iterdir()):
            if file.name.startswith(".") or not file.is_file():
                continue
            key = file.read_text().strip()
            if len(key) < _SHORTEST_KEY:
                self._log.error("declared key is too short to be safe", file=file.name)
                continue
            record = ApiKey(
                hash=keys.key_hash(key.encode()),
                prefix=keys.shown_prefix(key),
                team=file.name,
                role=ADMIN if file.name == ADMIN else "team",
            )
            declared[record.hash] = record
        return declared
