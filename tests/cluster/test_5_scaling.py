"""Endpoints that scale by themselves, with the real KEDA and the real Prometheus adapter."""

import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from components import EndpointType, Scaling, Tasks

from .conftest import TEAM_NAMESPACE, Running
from .team_stack import Calls, TeamStack, Workers, until

QUICK = {
    "window_seconds": 20,
    "scale_down_stabilization_seconds": 15,
    "cooldown_seconds": 15,
    "cold_start_seconds": 15,
    "polling_interval_seconds": 2,
}
SCALED = {
    "type": EndpointType.SYNC,
    "scaling": Scaling(min_workers=1, max_workers=4, per_worker=2, max_concurrency=8, **QUICK),
}
SLOW_START_SECONDS = 90
"""Longer than the activation's expiry (60 s) and the cooldown (15 s) together."""
COLD = {
    "type": EndpointType.STREAMING,
    "scaling": Scaling(min_workers=0, max_workers=2, per_worker=2, **QUICK),
    "env": {"START_SECONDS": str(SLOW_START_SECONDS)},
}
TASKS = {
    "type": EndpointType.ASYNC,
    "scaling": Scaling(min_workers=0, max_workers=3, per_worker=4, max_concurrency=8, **QUICK),
    "tasks": Tasks(lease_seconds=10),
}
MONITORING = "llm-platform-monitoring"
ASYNC_TASKS = 2000

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def calls(running: Running) -> Iterator[Calls]:
    calls = Calls(running)
    yield calls
    calls.close()


@pytest.fixture(scope="module")
def workers(running: Running) -> Workers:
    return Workers(running)


@pytest.fixture(scope="module")
def stack(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamStack]:
    stack = TeamStack(running, tmp_path_factory.mktemp("team"))
    try:
        stack.up(scaled=SCALED, cold=COLD, tasks=TASKS)
        yield stack
    finally:
        stack.destroy()


@pytest.fixture(scope="module")
def first_cold_request(stack: TeamStack, calls: Calls, workers: Workers) -> Iterator[Future[dict]]:
    """Asked before anything else, since its worker takes long to load."""
    assert workers.wanted("cold") == 0
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(calls.sync, "cold", echo="first")


def prometheus(running: Running, replicas: int) -> None:
    running.kubectl(
        *("scale", "deployment/prometheus", "--namespace", MONITORING, f"--replicas={replicas}")
    )
    running.kubectl(
        *("rollout", "status", "deployment/prometheus", "--namespace", MONITORING),
        "--timeout=180s",
    )


def condition(autoscaler: dict, kind: str) -> str:
    return next(
        (c["status"] for c in autoscaler["status"].get("conditions", []) if c["type"] == kind), ""
    )


def never_down_then_up(numbers: list[int]) -> bool:
    return numbers == sorted(numbers, reverse=True)


def test_workers_follow_the_load_and_stay_when_the_metrics_are_away(
    running: Running,
    stack: TeamStack,
    calls: Calls,
    workers: Workers,
    first_cold_request: "Future[dict]",
) -> None:
    until(lambda: condition(workers.autoscaler("scaled"), "ScalingActive") == "True", "its metric")
    with calls.steady("scaled", clients=6, seconds=1.0) as ending:
        until(lambda: workers.ready("scaled") >= 3, "three workers at three times per_worker")
        changes = stack.up()
        assert set(changes) == {"same"}, changes
        before = workers.wanted("scaled")
        assert 3 <= before <= 4
        prometheus(running, 0)
        ending.set()
    assert set(calls.outcomes) == {"1"}, calls.outcomes
    until(lambda: condition(workers.autoscaler("scaled"), "ScalingActive") == "False", "the outage")
    # A cold endpoint wakes although the metrics are away; by then a scale-in would have come.
    assert first_cold_request.result(300)["echo"] == "first"
    assert workers.wanted("scaled") == before
    with workers.watched("scaled") as seen:
        prometheus(running, 1)
        until(lambda: workers.wanted("scaled") == 1, "one worker after the load")
    assert never_down_then_up([wanted for wanted, _ in seen]), seen


def test_an_idle_endpoint_goes_to_zero_and_comes_back_for_a_stream(
    running: Running, stack: TeamStack, calls: Calls, workers: Workers
) -> None:
    until(lambda: workers.wanted("cold") == 0, "no worker when idle")
    stack.up(cold={**COLD, "env": {}})
    assert workers.wanted("cold") == 0
    assert calls.sync("cold", echo="again")["echo"] == "again"


def test_a_switch_of_owner_leaves_one_and_drops_no_worker(
    stack: TeamStack, calls: Calls, workers: Workers
) -> None:
    warm = {**COLD, "env": {}, "scaling": Scaling(min_workers=1, max_workers=2, per_worker=2)}
    until(lambda: workers.wanted("cold") == 0, "no worker when idle")
    stack.up(cold=warm)
    assert workers.owners("cold") == {"HorizontalPodAutoscaler/cold"}
    until(lambda: workers.ready("cold") == 1, "a worker, now that one always runs")
    with workers.watched("cold") as seen:
        stack.up(cold={**warm, "scaling": Scaling(min_workers=0, max_workers=2, per_worker=2)})
        until(
            lambda: (
                workers.owners("cold")
                == {"ScaledObject/cold", "HorizontalPodAutoscaler/keda-hpa-cold"}
            ),
            "KEDA as its only owner",
        )
    assert {ready for _, ready in seen} == {1}, seen
    with workers.watched("cold") as seen:
        stack.up(cold=warm)
        until(
            lambda: workers.owners("cold") == {"HorizontalPodAutoscaler/cold"}, "its HPA as owner"
        )
    assert {ready for _, ready in seen} == {1}, seen


@pytest.mark.parametrize("count", [1, 3])
def test_a_new_version_rolls_out_without_a_failed_request(
    running: Running, stack: TeamStack, calls: Calls, workers: Workers, count: int
) -> None:
    rolled = {
        "type": EndpointType.SYNC,
        "scaling": Scaling(min_workers=count, max_workers=count, per_worker=4),
        # As on GPUs: an old worker goes before a new one comes.
        "surge": False,
    }
    stack.up(rolled={**rolled, "env": {"VERSION": "old"}})
    calls.outcomes.clear()
    with calls.steady("rolled", clients=4, seconds=0.2):
        until(lambda: calls.outcomes["old"] >= 8, "answers of the old version")
        stack.up(rolled={**rolled, "env": {"VERSION": "new"}})
        until(lambda: calls.outcomes["new"] >= 8, "answers of the new version")
    assert set(calls.outcomes) == {"old", "new"}, calls.outcomes
    stack.remove("rolled")


def test_every_task_has_one_result_though_workers_are_killed(
    running: Running, stack: TeamStack, calls: Calls, workers: Workers
) -> None:
    dice = random.Random(4)  # noqa: S311 - which worker, not secrets
    # Those of an earlier endpoint of this name are kept, too.
    letters_before = [letter["task_id"] for letter in calls.dead_letters("tasks")]
    with ThreadPoolExecutor(8) as pool:
        ids = list(
            pool.map(lambda n: calls.submit("tasks", echo=n, seconds=0.1), range(ASYNC_TASKS))
        )
    poison = calls.submit("tasks", die=True)
    until(lambda: workers.wanted("tasks") == 3, "as many workers as the queue asks for")
    for force in (True, False, True):
        until(lambda: workers.ready("tasks") >= 2, "workers to kill")
        pods = running.objects("pods", TEAM_NAMESPACE, "llm-platform/endpoint=tasks")
        victim = dice.choice([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]])
        running.kubectl(
            *("delete", "pod", victim["metadata"]["name"], "--namespace", TEAM_NAMESPACE),
            *(("--grace-period=0", "--force") if force else ("--wait=false",)),
        )

    def finished(task_id: str) -> bool:
        return calls.task(task_id)["status"] in {"SUCCESS", "FAILURE"}

    for number, task_id in enumerate(ids):
        until(lambda: finished(task_id), f"the result of task {number}", 600)  # noqa: B023
        task = calls.task(task_id)
        assert task["status"] == "SUCCESS", task
        assert f'"echo": {number},' in task["result"]["result"]
    until(lambda: finished(poison), "the end of the poison task", 300)
    assert calls.task(poison)["status"] == "FAILURE"
    letters = [letter["task_id"] for letter in calls.dead_letters("tasks")]
    assert [letter for letter in letters if letter not in letters_before] == [poison]
    until(lambda: workers.wanted("tasks") == 0, "no worker once the queue is empty")
