"""Redis users of teams: each may do to its own tasks what workers do, and nothing else."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import structlog
from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from components.domain import keys
from components.domain.names import K8sName
from services.core.backoff import Backoff

_LOOK_SECONDS = 2
_SHORTEST_PASSWORD = 16
_USERS = keys.team_user("")

COMMANDS = (
    # A connection's beginning. CLIENT SETINFO isn't here: an older server doesn't know it and
    # would refuse the whole user, and clients do without.
    *("ping", "hello", "select", "client|setname"),
    # Taking a task, and settling it, in scripts that touch only what their user may.
    *("blmove", "evalsha", "script|load", "time"),
    *("rpop", "rpush", "lpush", "llen"),
    *("hget", "hset", "hdel", "hexists", "hincrby"),
    *("zadd", "zrem", "zrangebyscore"),
)
"""What a worker needs of Redis: found by running one under such a user."""

_team_name: TypeAdapter[str] = TypeAdapter(K8sName)


class TeamUsers:
    """Keeps Redis' users of teams equal to the files, also after Redis has forgotten them.

    Args:
        folder: a file for each team: its name is the team's, its content the password.
        redis: connected as a user who may change users.
        log: the service's logger.
    """

    def __init__(
        self, folder: Path, redis: Redis, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._folder = folder
        self._redis = redis
        self._log = log
        self._rights: dict[str, list[str]] = {}
        self._seen: dict[str, str] = {}

    async def run(self) -> None:
        """Compare again and again until cancelled; an outage is waited out."""
        backoff = Backoff(limit_seconds=5)
        while True:
            try:
                await self.apply()
            except (RedisError, OSError, TimeoutError) as error:
                self._log.warning("users of teams can't be kept", error=type(error).__name__)
                await backoff.wait()
                continue
            backoff.reset()
            await asyncio.sleep(_LOOK_SECONDS)

    async def apply(self) -> None:
        """Bring the users to what they should be."""
        declared = await asyncio.to_thread(self._read)
        if declared is None:
            return
        present = await self._present()
        stale = [
            user
            for user, rights in declared.items()
            if self._rights.get(user) != rights or present.get(user) != self._seen.get(user, "")
        ]
        gone = sorted(present.keys() - declared.keys())
        for user in stale:
            await self._redis.execute_command("ACL", "SETUSER", user, *declared[user])
        if gone:
            await self._redis.execute_command("ACL", "DELUSER", *gone)
        if stale or gone:
            # How Redis itself writes what we asked for, to see when it has changed.
            self._seen = await self._present()
            self._log.info("users of teams applied", users=sorted(stale), removed=gone)
        self._rights = declared

    async def _present(self) -> dict[str, str]:
        lines: Any = await self._redis.execute_command("ACL", "LIST")
        users: dict[str, str] = {}
        for raw in lines:
            line = raw.decode() if isinstance(raw, bytes) else str(raw)
            name = line.split(" ", 2)[1]
            if name.startswith(_USERS):
                users[name] = line
        return users

    def _read(self) -> dict[str, list[str]] | None:
        """Return each user's rights; None without a folder, which is a missing mount."""
        if not self._folder.is_dir():
            return None
        declared: dict[str, list[str]] = {}
        for file in sorted(self._folder.iterdir()):
            if file.name.startswith(".") or not file.is_file():
                continue
            password = file.read_text().strip()
            if not _is_name(file.name) or len(password) < _SHORTEST_PASSWORD:
                self._log.error("team's password can't be used", file=file.name)
                continue
            declared[keys.team_user(file.name)] = _rights(file.name, password)
        return declared


def _rights(team: str, password: str) -> list[str]:
    digest = hashlib.sha256(password.encode()).hexdigest()
    allowed = [f"+{command}" for command in COMMANDS]
    pattern = f"~{keys.team_prefix(team)}*"
    return ["reset", "on", f"#{digest}", "resetkeys", pattern, "resetchannels", "-@all", *allowed]


def _is_name(text: str) -> bool:
    try:
        _team_name.validate_python(text)
    except ValidationError:
        return False
    return True
