"""A stack's lock is removed only when its owner is proven dead, and never before a backup."""

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.backend import PROJECT
from deploy.engine import Engine, Owner
from deploy.errors import DeployError

STACK = "platform.local"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def engine(tmp_path: Path, said: list[str]) -> Engine:
    backend = {"PULUMI_BACKEND_URL": f"file://{tmp_path}/backend"}
    return Engine(backend, tmp_path / "logs", tmp_path / "backups", said.append)


def write_lock(tmp_path: Path, pid: int, host: str, at: datetime) -> Path:
    lock = tmp_path / "backend/.pulumi/locks/organization" / PROJECT / STACK / "0b1c.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    facts = {"pid": pid, "username": "ada", "hostname": host, "timestamp": at.isoformat()}
    lock.write_text(json.dumps(facts))
    return lock


def write_state(tmp_path: Path, text: str) -> None:
    state = tmp_path / "backend/.pulumi/stacks" / PROJECT / f"{STACK}.json"
    state.parent.mkdir(parents=True)
    state.write_text(text)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_lock_of_a_dead_process_goes_after_a_backup(
    engine: Engine, tmp_path: Path, said: list[str]
) -> None:
    lock = write_lock(tmp_path, ended_process(), os.uname().nodename, datetime.now(UTC))
    write_state(tmp_path, '{"version": 3}')
    engine.heal(STACK)
    assert not lock.exists()
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.read_text() == '{"version": 3}'
    assert any("dead" in line for line in said)


def test_a_lock_made_on_another_machine_is_never_removed(engine: Engine, tmp_path: Path) -> None:
    lock = write_lock(tmp_path, ended_process(), "another-host", datetime.now(UTC))
    with pytest.raises(DeployError, match=r"ada@another-host.*pulumi cancel"):
        engine.heal(STACK)
    assert lock.exists()


def test_a_process_number_given_anew_is_not_taken_for_the_owner(
    engine: Engine, tmp_path: Path
) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    # This very process lives, but it began after the lock was taken: it can't have taken it.
    lock = write_lock(tmp_path, os.getpid(), os.uname().nodename, yesterday)
    engine.heal(STACK)
    assert not lock.exists()


def test_a_living_owner_is_waited_for(engine: Engine, tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = time.time()
    lock = write_lock(
        tmp_path, owner.pid, os.uname().nodename, datetime.fromtimestamp(started + 1, UTC)
    )
    assert Owner.read(lock) is not None
    assert Owner.read(lock).may_live()  # type: ignore[union-attr]
    healing = threading.Thread(target=engine.heal, args=(STACK,))
    healing.start()
    healing.join(1)
    assert healing.is_alive()
    assert lock.exists()
    owner.communicate(b"\n")
    healing.join(20)
    assert not healing.is_alive()
    assert not lock.exists()


@pytest.mark.parametrize("name", ["0b1c.json", "0b1c.json.187c2a.tmp"])
def test_a_lock_left_half_written_goes(engine: Engine, tmp_path: Path, name: str) -> None:
    lock = write_lock(tmp_path, 1, "host", datetime.now(UTC)).with_name("0b1c.json")
    lock = lock.rename(lock.with_name(name))
    lock.write_text('{"pid": ')
    long_ago = time.time() - 60
    os.utime(lock, (long_ago, long_ago))
    engine.heal(STACK)
    assert not lock.exists()


def test_no_lock_is_no_work(engine: Engine, tmp_path: Path) -> None:
    engine.heal(STACK)
    assert not (tmp_path / "backups").exists()


def test_the_timestamps_that_pulumi_writes_are_understood(tmp_path: Path) -> None:
    lock = tmp_path / "lock.json"
    lock.write_text(
        '{"pid":7,"username":"root","hostname":"vm","timestamp":"2026-11-30T16:00:00.123456789Z"}'
    )
    owner = Owner.read(lock)
    assert owner is not None
    assert owner.since == pytest.approx(1796054400.123, abs=0.01)
