"""How many workers there are to be: what people may say, and what is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from components import CloudWatch, EndpointType, ManagedPrometheus, Scaling
from components.domain.metrics import WINDOWS

WORKSPACE = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1"


def test_concurrency_is_twice_the_target_unless_said() -> None:
    assert Scaling(per_worker=16).max_concurrency == 32
    assert Scaling(per_worker=16, max_concurrency=17).max_concurrency == 17


def test_what_is_left_out_follows_from_what_is_said() -> None:
    assert Scaling(min_workers=3).max_workers == 3
    assert Scaling(min_workers=0).max_workers == 1
    assert Scaling(min_workers=3).fallback_workers == 3
    assert Scaling(min_workers=0, max_workers=4).fallback_workers == 1
    assert Scaling().polling_interval_seconds == 30
    assert Scaling(min_workers=0).polling_interval_seconds == 5
    assert Scaling(min_workers=0, polling_interval_seconds=60).polling_interval_seconds == 60


def test_a_queue_is_given_more_time_before_workers_go() -> None:
    scaling = Scaling(min_workers=0, max_workers=4)
    times = {
        kind: (scaling.scale_down_seconds(kind), scaling.cooldown(kind)) for kind in EndpointType
    }
    assert times == {
        EndpointType.SYNC: (300, 300),
        EndpointType.STREAMING: (300, 300),
        EndpointType.ASYNC: (600, 600),
    }


def test_the_last_worker_never_goes_before_the_others_may() -> None:
    calm = Scaling(min_workers=0, scale_down_stabilization_seconds=900)
    assert calm.cooldown(EndpointType.SYNC) == 900
    quick = Scaling(min_workers=0, scale_down_stabilization_seconds=20, cooldown_seconds=20)
    assert quick.cooldown(EndpointType.ASYNC) == 20
    hasty = Scaling(min_workers=0, cooldown_seconds=300)
    assert hasty.cooldown(EndpointType.SYNC) == 300
    with pytest.raises(ValueError, match=r"cooldown_seconds=300 is shorter than .*=600"):
        hasty.cooldown(EndpointType.ASYNC)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"min_workers": -1}, "min_workers"),
        ({"max_workers": 0}, "max_workers=0 .*min_workers=0 has no worker"),
        ({"min_workers": 3, "max_workers": 2}, "max_workers=2 is below min_workers=3: raise"),
        ({"per_worker": 0}, "per_worker"),
        ({"per_worker": 4, "max_concurrency": 4}, "max_concurrency=4 .*never scales out"),
        ({"per_worker": 4, "max_concurrency": 3}, "max_concurrency=3 .*never scales out"),
        ({"window_seconds": 30}, "window_seconds=30 .*20, 60, 120, 300"),
        ({"polling_interval_seconds": 0}, "polling_interval_seconds"),
        ({"scale_up_stabilization_seconds": 3601}, "scale_up_stabilization_seconds"),
        ({"scale_down_stabilization_seconds": 3601}, "scale_down_stabilization_seconds"),
        ({"cold_start_seconds": 1801}, "cold_start_seconds"),
        ({"scale_up_workers": 0}, "scale_up_workers"),
        ({"fallback_workers": 0}, "fallback_workers=0 .*use 1 or more"),
        ({"fallback_workers": 3, "max_workers": 2}, "fallback_workers=3 is above max_workers=2"),
        ({"source": CloudWatch(region="eu-west-1"), "window_seconds": 60}, "window_seconds=60"),
        ({"metricCollectionPeriod": 60}, "metricCollectionPeriod"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Scaling(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"region": "Ireland"}, "region"),
        ({"period_seconds": 45}, "period_seconds=45 .*multiple of 60"),
        ({"collection_seconds": 60}, "collection_seconds=60 .*two of them at least"),
        ({"period_seconds": 120, "collection_seconds": 300}, "collection_seconds=300"),
        ({"authentication": "Not_A_Name"}, "authentication"),
    ],
)
def test_what_cloudwatch_does_not_take_is_refused_by_name(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        CloudWatch(**{"region": "eu-west-1", **given})


def test_a_workspace_is_named_by_its_address() -> None:
    assert ManagedPrometheus(url=f"{WORKSPACE}/", region="eu-west-1").url == WORKSPACE
    with pytest.raises(ValidationError, match="isn't the address of a workspace"):
        ManagedPrometheus(url="ws-1", region="eu-west-1")


def test_every_window_that_is_averaged_over_may_be_chosen() -> None:
    assert [Scaling(window_seconds=window).window_seconds for window in WINDOWS] == list(WINDOWS)


def test_cold_starts_are_met_early_and_warm_ones_calmly() -> None:
    cold, warm = Scaling.cold(max_workers=8), Scaling.warm(max_workers=8)
    assert cold.min_workers > warm.min_workers
    assert cold.per_worker < warm.per_worker
    assert cold.max_concurrency >= 4 * cold.per_worker
    assert cold.cold_start_seconds > warm.cold_start_seconds
    assert cold.scale_down_seconds(EndpointType.SYNC) > 300
    assert warm.scale_down_seconds(EndpointType.SYNC) == 300
    assert warm.window_seconds == 60


def test_a_preset_s_choices_can_be_changed() -> None:
    assert Scaling.warm(max_workers=4, min_workers=0, per_worker=3) == Scaling(
        min_workers=0,
        max_workers=4,
        per_worker=3,
        window_seconds=60,
        cold_start_seconds=60,
        scale_down_stabilization_seconds=300,
    )
    with pytest.raises(ValidationError, match="max_workers=1 is below min_workers=2"):
        Scaling.cold(max_workers=1)
