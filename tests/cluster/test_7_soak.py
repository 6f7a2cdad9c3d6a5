"""Long fault runs, outside CI: ``make soak``; their figures go to benchmarks/RESULTS.md."""

import json
import os
import random
import time
from collections import Counter

import pytest

from deploy.local import FOUNDATION, PLATFORM

from .conftest import Running, kill_tree, make_up
from .test_4_faults import CLEAN, VICTIMS, Load, answers, ready_pods, until

ROUNDS = int(os.environ.get("SOAK_ROUNDS", "20"))
LATEST_KILL_SECONDS = 45
UP_LIMIT_SECONDS = 600

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * 3600)]


def test_up_killed_at_random_moments_always_converges(running: Running) -> None:
    dice, moments = random.Random(20261130), []  # noqa: S311 - which moments, not secrets
    for _ in range(ROUNDS):
        assert running.pulumi("destroy", "--stack", PLATFORM, "--yes").returncode == 0
        up = make_up()
        moment = dice.uniform(1, LATEST_KILL_SECONDS)
        time.sleep(moment)  # the moment is what is varied here, nothing is waited for
        kill_tree(up)
        moments.append(round(moment, 1))
        assert make_up().wait(UP_LIMIT_SECONDS) == 0, f"not healed after a kill at {moments[-1]} s"
        for stack in (FOUNDATION, PLATFORM):
            preview = running.pulumi("preview", "--stack", stack, "--expect-no-changes")
            assert preview.returncode == 0, preview.stdout
    print(json.dumps({"killed_ups": ROUNDS, "converged": len(moments), "at_seconds": moments}))


def test_pods_killed_by_the_dozen_hang_no_request(running: Running) -> None:
    dice, kills = random.Random(7), Counter[str]()  # noqa: S311
    with Load(running, clients=4).applied() as load:
        for _ in range(ROUNDS):
            victim = dice.choice(sorted(VICTIMS))
            namespace, selector, _ = VICTIMS[victim]
            before = ready_pods(running, namespace, selector)
            running.kubectl(
                *("delete", "pods", "--namespace", namespace, "--selector", selector),
                *("--grace-period=0", "--force"),
            )
            kills[victim] += 1
            until(
                lambda: bool(ready_pods(running, namespace, selector) - before),  # noqa: B023
                f"{victim} ready again",
            )
        until(lambda: answers(running), "an answer afterwards")
    assert set(load.outcomes) <= CLEAN | {"cut off"}, load.outcomes
    print(
        json.dumps(
            {
                "kills": dict(kills),
                "outcomes": dict(load.outcomes),
                "longest_request_seconds": round(load.longest_seconds, 1),
            }
        )
    )
