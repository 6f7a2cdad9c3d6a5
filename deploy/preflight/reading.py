"""A preflight's plan, from the settings of an environment's two stacks.

Only what a preflight needs is read. What `make up` writes into the settings may still be missing:
nothing has been brought up yet.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeployError
from ..paths import REPOSITORY
from ..settings import STEP, StackSettings
from .plan import Capacity, PreflightPlan, WantedNodes

if TYPE_CHECKING:
    from components.aws.foundation_args import AwsWishes, GpuPoolWish
    from components.aws.overflow import OverflowPool

_KEPT: set[Capacity] = {"on-demand", "reservation"}


def read(environment: str, folder: Path = REPOSITORY / "stacks") -> PreflightPlan:
    """Return what an environment wants.

    Raises:
        DeployError: naming the file and each setting that is missing or wrong.
    """
    file = folder / f"Pulumi.foundation.{environment}.yaml"
    if not file.exists():
        raise DeployError(STEP, f"there is no {file}; is ENV={environment} an environment?")
    settings = _settings(file)
    if settings.get("cloud") != "aws":
        raise DeployError(
            STEP, f"{file}: it hasn't llm-platform:cloud: aws, so nothing is to check"
        )
    above = _settings(folder / f"Pulumi.platform.{environment}.yaml")
    return plan_of(
        environment,
        _wishes(environment, settings),
        name=settings.get("name"),
        overflow=_overflow(environment, above),
        gateway_domain=(above.get("gateway") or {}).get("domain"),
    )


def _settings(file: Path) -> Mapping[str, Any]:
    return StackSettings.read(file).given if file.exists() else {}


def _wishes(environment: str, settings: Mapping[str, Any]) -> "AwsWishes":
    from components.aws.foundation_args import AwsWishes  # noqa: PLC0415 - brings Pulumi's provider

    known = {name: settings[name] for name in AwsWishes.model_fields if name in settings}
    return _checked(AwsWishes, known, f"foundation.{environment}")


def _overflow(environment: str, settings: Mapping[str, Any]) -> "list[OverflowPool]":
    from components.aws.overflow import OverflowPool  # noqa: PLC0415 - brings Pulumi's provider

    stack = f"platform.{environment}"
    return [_checked(OverflowPool, pool, stack) for pool in settings.get("overflow") or ()]


def _checked(kind: Any, given: Mapping[str, Any], stack: str) -> Any:
    from stacks.reading import SettingsError, parse  # noqa: PLC0415 - brings Pulumi

    try:
        # As it is read for the program itself, so that the same is said of what is wrong.
        return parse({"local": kind}, given, stack)
    except SettingsError as error:
        raise DeployError(STEP, str(error)) from error


def plan_of(
    environment: str,
    wishes: "AwsWishes",
    *,
    name: str | None = None,
    overflow: "list[OverflowPool] | None" = None,
    gateway_domain: str | None = None,
) -> PreflightPlan:
    """Return the plan of an environment.

    Args:
        environment: Its name.
        wishes: The foundation's settings.
        name: What its things are called after; the environment when left out.
        overflow: What Karpenter may make besides, of the platform's settings.
        gateway_domain: The gateway's name, of the platform's settings.
    """
    network, cluster = wishes.network, wishes.cluster
    existing = network.existing
    zones = network.zones or tuple(existing.private_subnets if existing else ())
    gateways = {"per_zone": len(zones), "one": 1, "none": 0}[network.nat.value]
    theirs = cluster.existing.name if cluster.existing else None
    return PreflightPlan(
        environment=environment,
        region=wishes.account.region,
        zones=zones,
        nodes=tuple(_all_nodes(wishes, zones, overflow or [])),
        kubernetes_version=cluster.version,
        cluster=theirs or cluster.cluster_name or name or environment,
        private_api=not cluster.public_access_cidrs,
        makes_cluster=theirs is None,
        makes_network=existing is None,
        nat_gateways=0 if existing else gateways,
        endpoints=0 if existing else len(network.services),
        account_id=wishes.account.id,
        gateway_domain=gateway_domain,
    )


def _all_nodes(
    wishes: "AwsWishes", zones: tuple[str, ...], overflow: "list[OverflowPool]"
) -> Iterator[WantedNodes]:
    system = wishes.system_nodes
    yield WantedNodes(
        name="system",
        instance_types=system.instance_types,
        zones=zones,
        least=system.min_nodes,
        most=system.max_nodes,
    )
    for name, pool in wishes.gpu_pools.items():
        yield from _pool(name, pool, zones)
    for pool in overflow:
        yield from _above(pool, zones)


def _pool(name: str, pool: "GpuPoolWish", all_zones: tuple[str, ...]) -> Iterator[WantedNodes]:
    from components.aws.capacity import CapacityBlock, Reservation  # noqa: PLC0415
    from components.domain.aws_instances import default_instance  # noqa: PLC0415

    types = pool.instance_types or (default_instance(pool.accelerator).type,)
    floor = pool.warm_floor
    for capacity in pool.capacity:
        # The floor rests on the first nodes that stay until they are let go.
        least, floor = (floor, 0) if capacity.kind in _KEPT else (0, floor)
        reserved = isinstance(capacity, Reservation | CapacityBlock)
        yield WantedNodes(
            name=name if capacity.kind == "on-demand" else f"{name} ({capacity.kind})",
            instance_types=types,
            zones=(capacity.zone,) if reserved else pool.zones or all_zones,
            least=least,
            most=capacity.nodes if reserved else capacity.max_nodes or pool.max_nodes,
            capacity=capacity.kind,
            reservation=str(capacity.reservation_id) if reserved else None,
        )


def _above(pool: "OverflowPool", all_zones: tuple[str, ...]) -> Iterator[WantedNodes]:
    """Karpenter's nodes, of any size as long as all together have no more GPUs than allowed."""
    fitting = [it for it in pool.types if it.gpus <= pool.max_gpus]
    for market in pool.capacity_types:
        if market == "reserved":
            continue
        yield WantedNodes(
            name=f"{pool.name} (overflow{', spot' if market == 'spot' else ''})",
            instance_types=tuple(it.type for it in fitting),
            zones=pool.zones or all_zones,
            least=0,
            most=max(pool.max_gpus // it.gpus for it in fitting),
            most_vcpus=max(pool.max_gpus // it.gpus * it.vcpus for it in fitting),
            capacity=market,
        )
