"""What components cost: 100 endpoints by ModelEndpoint, and the same resources written out.

Runs the real Pulumi engine and the real Kubernetes provider against the cluster that `make up` has
brought up; prints one JSON line. Both variants go into a namespace of their own, by turns, so that
neither gains by the order.

    eval "$(make -s env)"; python benchmarks/engine.py [--endpoints 100] [--rounds 2]
"""

import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402  (a script: the repository has to be importable first)
import pulumi
import pulumi_kubernetes as k8s
from pulumi import automation

from components import EndpointType, LocalPlatform, ModelEndpoint, ModelEndpointArgs, Scaling
from tests import samples
from tests.harness import Recorded, build

COMPONENTS, WRITTEN_OUT = "components", "written_out"
PHASES = ("preview", "up", "preview_unchanged")
_CLASSES = {
    "kubernetes:core/v1:ServiceAccount": k8s.core.v1.ServiceAccount,
    "kubernetes:core/v1:Service": k8s.core.v1.Service,
    "kubernetes:core/v1:ConfigMap": k8s.core.v1.ConfigMap,
    "kubernetes:core/v1:Secret": k8s.core.v1.Secret,
    "kubernetes:policy/v1:PodDisruptionBudget": k8s.policy.v1.PodDisruptionBudget,
    "kubernetes:apps/v1:Deployment": k8s.apps.v1.Deployment,
}


def endpoint(platform: LocalPlatform) -> ModelEndpointArgs:
    """Return an endpoint that has no worker, so that nothing but objects is made."""
    # Polled rarely: the machine is to measure the engine, not KEDA.
    scaling = Scaling(min_workers=0, max_workers=2, polling_interval_seconds=3600)
    return samples.llama_endpoint(platform=platform, type=EndpointType.STREAMING, scaling=scaling)


def view(namespace: str, provider: k8s.Provider | None = None) -> LocalPlatform:
    """Return a platform whose team has this namespace."""
    return dataclasses.replace(samples.platform(), namespace=namespace, provider=provider)


def by_components(names: list[str], namespace: str) -> None:
    """Declare the endpoints as people do."""
    platform = view(namespace, k8s.Provider("cluster"))
    for name in names:
        ModelEndpoint(name, endpoint(platform))


def resources_of(names: list[str], namespace: str) -> list[Recorded]:
    """Return what the components register, as plain inputs."""
    built = build(lambda: [ModelEndpoint(name, endpoint(view(namespace))) for name in names])
    return [resource for resource in built.resources if resource.custom]


def by_hand(resources: list[Recorded]) -> None:
    """Declare the same resources without any component."""
    provider = k8s.Provider("cluster")
    made: dict[str, pulumi.Resource] = {}
    for resource in resources:
        needs = [made[urn] for urn in resource.depends_on if urn in made]
        opts = pulumi.ResourceOptions(
            provider=provider, depends_on=needs, ignore_changes=list(resource.ignore_changes)
        )
        made[resource.urn] = _declare(resource, opts)


def _declare(resource: Recorded, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    inputs = {key: value for key, value in resource.inputs.items() if key != "apiVersion"}
    if resource.type in _CLASSES:
        inputs.pop("kind", None)
        fields = {_snake(key): value for key, value in inputs.items()}
        return _CLASSES[resource.type](resource.name, **fields, opts=opts)
    return k8s.apiextensions.CustomResource(
        resource.name,
        api_version=resource.inputs["apiVersion"],
        kind=resource.inputs["kind"],
        metadata=resource.inputs["metadata"],
        spec=resource.inputs["spec"],
        opts=opts,
    )


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def timed(run: Callable[[], Any]) -> float:
    """Return how many seconds ``run`` takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def one_round(variant: str, program: Callable[[], None], folder: Path) -> dict[str, float]:
    """Bring one variant up from nothing and take it down again; return each phase's seconds."""
    stack = automation.create_or_select_stack(
        variant.replace("_", "-"),
        project_name="engine-benchmark",
        program=program,
        opts=automation.LocalWorkspaceOptions(work_dir=str(folder), env_vars=dict(os.environ)),
    )
    try:
        return {
            "preview": timed(stack.preview),
            "up": timed(stack.up),
            "preview_unchanged": timed(stack.preview),
        }
    finally:
        stack.destroy()
        stack.workspace.remove_stack(stack.name)


def measure(endpoints: int, rounds: int) -> dict[str, Any]:
    """Measure both variants by turns."""
    names = [f"bench-{number:03}" for number in range(endpoints)]
    namespaces = {
        variant: f"bench-{variant.replace('_', '-')}" for variant in (COMPONENTS, WRITTEN_OUT)
    }
    resources = resources_of(names, namespaces[WRITTEN_OUT])
    programs: dict[str, Callable[[], None]] = {
        COMPONENTS: lambda: by_components(names, namespaces[COMPONENTS]),
        WRITTEN_OUT: lambda: by_hand(resources),
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, namespaces_made(namespaces.values()):
        for turn in range(rounds):
            order = list(programs) if turn % 2 == 0 else list(reversed(programs))
            for variant in order:
                for phase, took in one_round(variant, programs[variant], Path(folder)).items():
                    seconds.setdefault((variant, phase), []).append(took)
    return summary(seconds, endpoints, len(resources))


@contextlib.contextmanager
def namespaces_made(names: Iterable[str]) -> Iterator[None]:
    """Make namespaces for the while."""
    names = list(names)
    for name in names:
        subprocess.run(["kubectl", "create", "namespace", name], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["kubectl", "delete", "namespace", *names], check=True, capture_output=True)


def summary(
    seconds: dict[tuple[str, str], list[float]], endpoints: int, resources: int
) -> dict[str, Any]:
    """Return the line: medians, and what components cost as a ratio."""
    median = {key: statistics.median(values) for key, values in seconds.items()}
    return {
        "benchmark": "engine",
        "endpoints": endpoints,
        "resources": resources,
        "seconds": {
            phase: {
                variant: round(median[variant, phase], 1) for variant in (COMPONENTS, WRITTEN_OUT)
            }
            for phase in PHASES
        },
        "ratio": {
            phase: round(median[COMPONENTS, phase] / median[WRITTEN_OUT, phase], 2)
            for phase in PHASES
        },
        "target": "ratio <= 1.3",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.endpoints, arguments.rounds)))


if __name__ == "__main__":
    main()
