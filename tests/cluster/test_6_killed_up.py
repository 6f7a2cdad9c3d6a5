"""A ``make up`` killed in the middle is healed by the next one; ``make down`` leaves nothing."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from deploy.backend import FileBackend
from deploy.local import FOUNDATION, PLATFORM
from deploy.paths import REPOSITORY
from lab.paths import LabPaths

from .conftest import Running, kill_tree, machine, make_up

HEALS_LIMIT_SECONDS = 300


@pytest.mark.timeout(900)
def test_a_killed_up_is_healed_by_the_next(
    running: Running, lines_shown: Callable[[], Any]
) -> None:
    assert running.pulumi("destroy", "--stack", PLATFORM, "--yes", "--skip-preview").returncode == 0
    backend = FileBackend.at(running.engine.environ["PULUMI_BACKEND_URL"])
    assert backend is not None
    state = backend.state(PLATFORM)
    with lines_shown():
        up = make_up()
        deadline = time.monotonic() + HEALS_LIMIT_SECONDS
        # In the middle: some objects are made and written down, the lock is held.
        while not (any(backend.locks(PLATFORM)) and state.read_text().count('"urn"') > 8):
            assert time.monotonic() < deadline, "the update never got to the middle"
            assert up.poll() is None, "the update ended before it could be killed"
            time.sleep(0.05)
        kill_tree(up)
        assert any(backend.locks(PLATFORM)), "the killed update left no lock"
        assert make_up().wait() == 0
    for stack in (FOUNDATION, PLATFORM):
        preview = running.pulumi("preview", "--stack", stack, "--expect-no-changes")
        assert preview.returncode == 0, preview.stdout + preview.stderr


@pytest.mark.timeout(600)
def test_down_leaves_the_machine_as_it_was(
    running: Running, machine_before: dict[str, set[str]], lines_shown: Callable[[], Any]
) -> None:
    if not machine_before:
        pytest.skip("a platform was up before the tests; it stays")
    with lines_shown():
        down = subprocess.run(
            [sys.executable, "-m", "deploy", "down"],
            cwd=REPOSITORY,
            check=False,
        )
    assert down.returncode == 0
    assert not LabPaths.of_this_user().state.exists()
    after = machine()
    for kind, before in machine_before.items():
        assert after[kind] - before == set(), f"{kind} are left"
        assert before - after[kind] == set(), f"{kind} are gone"
