"""The recording rules, reckoned by Prometheus' own engine over recorded series."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.domain.metrics import (
    CACHER_READY_WORKERS,
    CONCURRENCY,
    FORWARDER_IN_FLIGHT,
    GATEWAY_CONCURRENCY,
    GATEWAY_IN_FLIGHT,
    GATEWAY_WAITING,
    MESH_SECONDS,
    OPEN_REQUESTS,
)
from components.domain.recording import MeshKind, rule_groups
from lab import toolchain

SCRAPE = 5
WINDOW = 60
# Five minutes of scrapes: long enough for every window that is looked at here.
AT = "5m"
SAMPLES = 5 * 60 // SCRAPE

Series = Mapping[str, str]
"""Prometheus' own notation of samples, by series."""


def promtool() -> str:
    """Find Prometheus' own tool: the installed one, or that of the tool chain."""
    found = shutil.which("promtool")
    if found is None and toolchain.is_built("prometheus"):
        found = str(toolchain.program("promtool"))
    if found is None:
        pytest.skip("promtool isn't built yet: python3 -m lab toolchain prometheus")
    return found


def steady(value: float, length: int = SAMPLES) -> str:
    """Return a series that has one value all the time."""
    return f"{value}x{length}"


def in_flight(pod: str, endpoint: str = "llama", namespace: str = "team-red", **more: str) -> str:
    return series(
        FORWARDER_IN_FLIGHT, job="workers", namespace=namespace, endpoint=endpoint, pod=pod, **more
    )


def waiting(gateway: str, endpoint: str = "llama", namespace: str = "team-red") -> str:
    return series(
        GATEWAY_WAITING,
        job="platform",
        service="gateway",
        namespace=namespace,
        endpoint=endpoint,
        pod=gateway,
    )


def ready(endpoint: str = "llama", namespace: str = "team-red", job: str = "platform") -> str:
    return series(
        CACHER_READY_WORKERS,
        job=job,
        service="cacher",
        namespace=namespace,
        endpoint=endpoint,
        pod="cacher-1",
    )


def up(service: str, pod: str, job: str = "platform", **labels: str) -> str:
    return series("up", job=job, service=service, pod=pod, **labels)


def proxy_up(pod: str) -> str:
    return series("up", job="mesh", namespace="team-red", endpoint="llama", pod=pod)


def mesh_seconds(pod: str, reporter: str, **more: str) -> str:
    return series(
        MESH_SECONDS,
        job="mesh",
        namespace="team-red",
        endpoint="llama",
        pod=pod,
        reporter=reporter,
        **more,
    )


def series(name: str, **labels: str) -> str:
    return f"{name}{{{','.join(f'{key}={value!r}' for key, value in sorted(labels.items()))}}}"


GATEWAYS = {up("gateway", "gateway-1"): steady(1), up("gateway", "gateway-2"): steady(1)}
CALM = {waiting("gateway-1"): steady(0), waiting("gateway-2"): steady(0)}
TWO_BUSY = {in_flight("llama-1"): steady(3), in_flight("llama-2"): steady(4)}


def concurrency(window: int = WINDOW, **labels: str) -> str:
    wanted = {"namespace": "team-red", "endpoint": "llama", "window": str(window), **labels}
    return series(CONCURRENCY, **wanted).replace("'", '"')


def check(
    folder: Path,
    given: Series,
    expected: Mapping[str, float | None],
    *,
    mesh: MeshKind = MeshKind.NONE,
    at: str = AT,
) -> None:
    """Let Prometheus reckon ``given``, and compare what each query answers; None is no sample."""
    windows = (20, WINDOW, 120)
    rules = rule_groups(mesh=mesh, scrape_seconds=SCRAPE, windows=windows)
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    tests: list[dict[str, Any]] = [
        {
            "interval": f"{SCRAPE}s",
            "input_series": [
                {"series": name.replace("'", '"'), "values": values}
                for name, values in given.items()
            ],
            "promql_expr_test": [
                {
                    "expr": query,
                    "eval_time": at,
                    "exp_samples": [] if value is None else [{"labels": query, "value": value}],
                }
                for query, value in expected.items()
            ],
        }
    ]
    file = folder / "test.yml"
    file.write_text(
        yaml.safe_dump(
            {"rule_files": ["rules.yml"], "evaluation_interval": f"{SCRAPE}s", "tests": tests}
        )
    )
    result = subprocess.run(
        [promtool(), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    for mesh in MeshKind:
        file = tmp_path / f"{mesh.value}.yml"
        rules = rule_groups(mesh=mesh, scrape_seconds=SCRAPE, windows=(20, 60, 120, 300))
        file.write_text(yaml.safe_dump(rules))
        done = subprocess.run(
            [promtool(), "check", "rules", "--lint-fatal", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_open_requests_of_all_workers_are_summed(tmp_path: Path) -> None:
    given = {**GATEWAYS, **CALM, **TWO_BUSY, ready(): steady(2)}
    check(tmp_path, given, {concurrency(): 7, concurrency(20): 7, concurrency(120): 7})


def test_requests_held_at_any_gateway_are_counted(tmp_path: Path) -> None:
    held = {waiting("gateway-1"): steady(2), waiting("gateway-2"): steady(5)}
    check(
        tmp_path, {**GATEWAYS, **held, **TWO_BUSY, ready(): steady(2)}, {concurrency(): 3 + 4 + 7}
    )


def test_a_gateway_that_never_held_a_request_counts_as_none(tmp_path: Path) -> None:
    check(tmp_path, {**GATEWAYS, **TWO_BUSY, ready(): steady(2)}, {concurrency(): 7})


def test_endpoints_of_one_name_in_two_namespaces_are_two(tmp_path: Path) -> None:
    given = {
        **GATEWAYS,
        **CALM,
        in_flight("llama-1"): steady(3),
        in_flight("llama-1", namespace="team-blue"): steady(9),
        ready(): steady(1),
        ready(namespace="team-blue"): steady(1),
    }
    check(tmp_path, given, {concurrency(): 3, concurrency(namespace="team-blue"): 9})


def test_the_window_is_averaged_over(tmp_path: Path) -> None:
    # Idle for four and a half minutes, then 12 requests for the last 30 s (six scrapes).
    idle, busy = SAMPLES - 6, 5
    given = {
        **GATEWAYS,
        **CALM,
        in_flight("llama-1"): f"0x{idle} 12x{busy}",
        ready(): steady(1),
    }
    check(tmp_path, given, {concurrency(20): 12, concurrency(60): 6, concurrency(120): 3})


def test_without_one_of_the_workers_there_is_no_sample(tmp_path: Path) -> None:
    given = {**GATEWAYS, **CALM, in_flight("llama-1"): steady(3), ready(): steady(2)}
    check(tmp_path, given, {concurrency(): None})


def test_a_worker_that_is_lost_takes_the_sample_away_at_once(tmp_path: Path) -> None:
    given = {
        **GATEWAYS,
        **CALM,
        in_flight("llama-1"): steady(3),
        in_flight("llama-2"): f"4x{SAMPLES - 3} stale",
        ready(): steady(2),
    }
    check(tmp_path, given, {concurrency(): None, concurrency(20): None})


def test_without_any_worker_there_is_no_sample(tmp_path: Path) -> None:
    check(tmp_path, {**GATEWAYS, **CALM, ready(): steady(2)}, {concurrency(): None})


def test_without_the_cacher_there_is_no_sample(tmp_path: Path) -> None:
    lost = {ready(): f"2x{SAMPLES - 3} stale"}
    check(tmp_path, {**GATEWAYS, **CALM, **TWO_BUSY, **lost}, {concurrency(): None})
    check(tmp_path, {**GATEWAYS, **CALM, **TWO_BUSY}, {concurrency(): None})


def test_without_a_gateway_that_answered_before_there_is_no_sample(tmp_path: Path) -> None:
    given = {
        **CALM,
        **TWO_BUSY,
        ready(): steady(2),
        up("gateway", "gateway-1"): steady(1),
        up("gateway", "gateway-2"): f"1x{SAMPLES - 3} 0x4",
    }
    check(tmp_path, given, {concurrency(): None})


def test_a_gateway_that_is_gone_for_a_minute_or_never_answered_takes_nothing_away(
    tmp_path: Path,
) -> None:
    given = {
        waiting("gateway-1"): steady(1),
        **TWO_BUSY,
        ready(): steady(2),
        up("gateway", "gateway-1"): steady(1),
        up("gateway", "gateway-2"): f"1x{SAMPLES - 30} 0x30",
        up("gateway", "gateway-3"): steady(0),
    }
    check(tmp_path, given, {concurrency(): 8})


def test_without_any_gateway_there_is_no_sample(tmp_path: Path) -> None:
    given = {**TWO_BUSY, ready(): steady(2), up("gateway", "gateway-1"): steady(0)}
    check(tmp_path, given, {concurrency(): None})
    check(tmp_path, {**TWO_BUSY, ready(): steady(2)}, {concurrency(): None})


def test_an_idle_endpoint_without_workers_reads_zero(tmp_path: Path) -> None:
    check(tmp_path, {**GATEWAYS, **CALM, ready(): steady(0)}, {concurrency(): 0})
    check(tmp_path, {**GATEWAYS, ready(): steady(0)}, {concurrency(): 0})


def test_requests_that_wait_for_the_first_worker_are_counted(tmp_path: Path) -> None:
    held = {waiting("gateway-1"): steady(3), waiting("gateway-2"): steady(0)}
    check(tmp_path, {**GATEWAYS, **held, ready(): steady(0)}, {concurrency(): 3})


def test_a_worker_that_drains_is_counted_though_it_takes_no_requests(tmp_path: Path) -> None:
    given = {**GATEWAYS, **CALM, in_flight("llama-1"): steady(2), ready(): steady(0)}
    check(tmp_path, given, {concurrency(): 2})


def test_an_endpoint_that_is_gone_has_no_sample(tmp_path: Path) -> None:
    gone = {ready(): f"1x{SAMPLES - 3} stale", in_flight("llama-1"): f"1x{SAMPLES - 3} stale"}
    check(tmp_path, {**GATEWAYS, **gone}, {concurrency(): None})


def test_a_rollout_counts_no_request_twice(tmp_path: Path) -> None:
    # The old worker's four requests go to the new one in the middle of the window.
    given = {
        **GATEWAYS,
        **CALM,
        in_flight("old"): f"4x{SAMPLES - 7} stale",
        in_flight("new"): f"_x{SAMPLES - 6} 4x6",
        ready(): steady(1),
    }
    check(tmp_path, given, {concurrency(): 4, concurrency(20): 4})


def test_after_an_outage_of_prometheus_the_first_samples_are_whole(tmp_path: Path) -> None:
    """A window that is mostly empty is no reason to scale in."""
    begin = f"_x{SAMPLES - 2}"
    given = {
        up("gateway", "gateway-1"): f"{begin} 1x2",
        waiting("gateway-1"): f"{begin} 0x2",
        in_flight("llama-1"): f"{begin} 8x2",
        ready(): f"{begin} 1x2",
    }
    check(tmp_path, given, {concurrency(): 8, concurrency(120): 8})


def test_a_team_can_not_make_up_anothers_load_or_hide_its_own(tmp_path: Path) -> None:
    """What pods of teams say comes under the job ``workers``, whatever it is called."""
    forged = {
        # A pod of team blue that plays the gateway and the cacher.
        series(
            GATEWAY_WAITING, job="workers", namespace="team-blue", endpoint="bait", pod="b-1"
        ): steady(500),
        series(
            CACHER_READY_WORKERS, job="workers", namespace="team-red", endpoint="llama", pod="b-1"
        ): steady(99),
        series("up", job="workers", service="gateway", namespace="team-blue", pod="b-2"): steady(0),
        # One of its own workers with many series counts once where workers are counted.
        in_flight("b-1", "bait", "team-blue", copy="1"): steady(1),
        in_flight("b-1", "bait", "team-blue", copy="2"): steady(1),
        ready("bait", "team-blue"): steady(2),
    }
    given = {**GATEWAYS, **CALM, **TWO_BUSY, ready(): steady(2), **forged}
    bait = concurrency(namespace="team-blue", endpoint="bait")
    check(tmp_path, given, {concurrency(): 7, bait: None})


def test_one_endpoint_s_gap_is_not_another_s(tmp_path: Path) -> None:
    given = {
        **GATEWAYS,
        **CALM,
        **TWO_BUSY,
        ready(): steady(2),
        in_flight("phi-1", "phi"): steady(5),
        ready("phi"): steady(3),
    }
    check(tmp_path, given, {concurrency(): 7, concurrency(endpoint="phi"): None})


def gateway_series(name: str) -> str:
    return series(name, namespace="llm-platform", service="gateway").replace("'", '"')


def gateway_load(pod: str) -> str:
    return series(
        GATEWAY_IN_FLIGHT, job="platform", namespace="llm-platform", service="gateway", pod=pod
    )


def test_the_gateways_own_load_is_summed(tmp_path: Path) -> None:
    given = {
        **GATEWAYS,
        gateway_load("gateway-1"): steady(40),
        gateway_load("gateway-2"): steady(2),
    }
    check(tmp_path, given, {gateway_series(GATEWAY_CONCURRENCY): 42})


def test_without_one_of_the_gateways_its_own_load_has_no_sample(tmp_path: Path) -> None:
    given = {
        up("gateway", "gateway-1"): steady(1),
        up("gateway", "gateway-2"): f"1x{SAMPLES - 3} 0x4",
        gateway_load("gateway-1"): steady(40),
        gateway_load("gateway-2"): f"2x{SAMPLES - 3} stale",
    }
    check(tmp_path, given, {gateway_series(GATEWAY_CONCURRENCY): None})


# With a mesh

MESHED = {
    **GATEWAYS,
    **CALM,
    in_flight("llama-1"): steady(0),
    in_flight("llama-2"): steady(0),
    proxy_up("llama-1"): steady(1),
    proxy_up("llama-2"): steady(1),
    ready(): steady(2),
}


def growing(per_second: float) -> str:
    """Return a counter of milliseconds that stands for this many requests at a time."""
    return f"0+{per_second * 1000 * SCRAPE}x{SAMPLES}"


def test_the_proxies_of_workers_measure_concurrency(tmp_path: Path) -> None:
    given = {
        **MESHED,
        mesh_seconds("llama-1", "destination"): growing(3),
        mesh_seconds("llama-2", "destination"): growing(4),
    }
    check(tmp_path, given, {concurrency(): 7, concurrency(20): 7}, mesh=MeshKind.ISTIO)


def test_a_request_that_two_proxies_report_counts_once(tmp_path: Path) -> None:
    given = {
        **MESHED,
        mesh_seconds("llama-1", "destination", response_code="200"): growing(2),
        mesh_seconds("llama-1", "destination", response_code="429"): growing(1),
        mesh_seconds("llama-1", "source"): growing(50),
    }
    check(tmp_path, given, {concurrency(): 3}, mesh=MeshKind.ISTIO)


def test_with_a_mesh_held_requests_are_counted_too(tmp_path: Path) -> None:
    held = {waiting("gateway-1"): steady(2), waiting("gateway-2"): steady(0)}
    given = {**MESHED, **held, mesh_seconds("llama-1", "destination"): growing(3)}
    check(tmp_path, given, {concurrency(): 5}, mesh=MeshKind.ISTIO)


def test_a_stream_that_no_proxy_has_counted_yet_is_seen_at_its_worker(tmp_path: Path) -> None:
    given = {
        **MESHED,
        in_flight("llama-1"): steady(6),
        mesh_seconds("llama-1", "destination"): steady(1000),
    }
    check(tmp_path, given, {concurrency(): 6}, mesh=MeshKind.ISTIO)


def test_with_a_mesh_an_idle_endpoint_reads_zero_before_its_first_request(tmp_path: Path) -> None:
    check(tmp_path, MESHED, {concurrency(): 0}, mesh=MeshKind.ISTIO)
    cold = {**GATEWAYS, **CALM, ready(): steady(0)}
    check(tmp_path, cold, {concurrency(): 0}, mesh=MeshKind.ISTIO)


def test_without_one_of_the_proxies_there_is_no_sample(tmp_path: Path) -> None:
    given = {
        **MESHED,
        proxy_up("llama-2"): f"1x{SAMPLES - 3} 0x4",
        mesh_seconds("llama-1", "destination"): growing(3),
    }
    check(tmp_path, given, {concurrency(): None}, mesh=MeshKind.ISTIO)


def test_without_one_of_the_forwarders_there_is_no_sample_with_a_mesh_either(
    tmp_path: Path,
) -> None:
    given = {
        **MESHED,
        in_flight("llama-2"): f"0x{SAMPLES - 3} stale",
        mesh_seconds("llama-1", "destination"): growing(3),
    }
    check(tmp_path, given, {concurrency(): None}, mesh=MeshKind.ISTIO)


def test_the_whole_figure_is_kept_without_a_window_too(tmp_path: Path) -> None:
    name = series(OPEN_REQUESTS, namespace="team-red", endpoint="llama").replace("'", '"')
    check(tmp_path, {**GATEWAYS, **CALM, **TWO_BUSY, ready(): steady(2)}, {name: 7})
