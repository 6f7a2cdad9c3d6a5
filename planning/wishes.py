"""From what people say of an environment in AWS to what of it costs money.

Settings are known here by their shape alone, since planning knows no cloud's components; those of
``components.aws.foundation_args`` have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, Protocol

from components.domain.accelerators import Accelerator
from components.domain.aws_instances import Instance, default_instance

from .plan import AwsPlan, CacheNodes, Capacity, Disk, NodePool, ServerlessDatabase


class _Disk(Protocol):
    @property
    def gib(self) -> int: ...
    @property
    def iops(self) -> int: ...
    @property
    def throughput_mib(self) -> int: ...


class _Source(Protocol):
    """One source of nodes: those of a reservation have ``nodes``, others may have ``max_nodes``."""

    @property
    def kind(self) -> Capacity: ...


class _SystemNodes(Protocol):
    @property
    def instance_types(self) -> tuple[str, ...]: ...
    @property
    def min_nodes(self) -> int: ...
    @property
    def max_nodes(self) -> int: ...
    @property
    def disk(self) -> _Disk: ...


class _Pool(Protocol):
    @property
    def accelerator(self) -> Accelerator: ...
    @property
    def instance_types(self) -> tuple[str, ...]: ...
    @property
    def warm_floor(self) -> int: ...
    @property
    def max_nodes(self) -> int: ...
    @property
    def capacity(self) -> Sequence[_Source]: ...
    @property
    def disk(self) -> _Disk: ...


class _Overflow(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def types(self) -> Sequence[Instance]: ...
    @property
    def max_gpus(self) -> int: ...
    @property
    def disk(self) -> _Disk: ...


class _Network(Protocol):
    @property
    def zones(self) -> tuple[str, ...]: ...
    @property
    def nat(self) -> str: ...
    @property
    def services(self) -> tuple[str, ...]: ...
    @property
    def existing(self) -> object | None: ...


class _Cluster(Protocol):
    @property
    def existing(self) -> object | None: ...


class Wishes(Protocol):
    """The settings of a foundation in AWS, as far as they cost money."""

    @property
    def network(self) -> _Network:
        """The network."""
        ...

    @property
    def cluster(self) -> _Cluster:
        """The cluster."""
        ...

    @property
    def system_nodes(self) -> _SystemNodes:
        """Nodes without GPUs."""
        ...

    @property
    def gpu_pools(self) -> Mapping[str, _Pool]:
        """Pools of GPU nodes."""
        ...


class DatabaseSize(Protocol):
    """How much the database may use."""

    @property
    def min_acu(self) -> float:
        """What each instance has at least."""
        ...

    @property
    def max_acu(self) -> float:
        """What each instance has at most."""
        ...

    @property
    def instances(self) -> int:
        """How many there are."""
        ...


class RedisSize(Protocol):
    """How large Redis is."""

    @property
    def node_type(self) -> str:
        """The nodes' type."""
        ...

    @property
    def nodes(self) -> int:
        """How many there are."""
        ...


_KEPT = {"on-demand", "reservation"}


def plan_from(
    environment: str,
    region: str,
    wishes: Wishes,
    *,
    database: DatabaseSize,
    redis: RedisSize,
    keys: int,
    secrets: int,
    load_balancer: Literal["network", "application"] | None = "network",
    overflow: Sequence[_Overflow] = (),
    others: Sequence[str] = (),
) -> AwsPlan:
    """Return what of an environment costs money.

    Args:
        environment: Its name.
        region: Where it is.
        wishes: The foundation's settings.
        database: The database's size, a named one looked up.
        redis: Redis's size, a named one looked up.
        keys: Keys that it has in KMS.
        secrets: Secrets that it has in Secrets Manager, the database's own among them.
        load_balancer: What stands before the gateway.
        overflow: What Karpenter may make besides.
        others: What else it has that no price is known of, in words.
    """
    network = wishes.network
    new_network = network.existing is None
    gateways = {"per_zone": len(network.zones), "one": 1, "none": 0}[str(network.nat)]
    return AwsPlan(
        environment=environment,
        region=region,
        clusters=0 if wishes.cluster.existing else 1,
        node_pools=tuple(_all_nodes(wishes, overflow)),
        nat_gateways=gateways if new_network else 0,
        endpoints=len(network.services) if new_network else 0,
        endpoint_zones=max(len(network.zones), 1),
        database=ServerlessDatabase(
            min_acu=Decimal(str(database.min_acu)),
            max_acu=Decimal(str(database.max_acu)),
            instances=database.instances,
        ),
        cache=CacheNodes(node_type=redis.node_type, nodes=redis.nodes),
        load_balancer=load_balancer,
        keys=keys,
        secrets=secrets,
        buckets=("weights", "results", "state"),
        queues=True,
        others=tuple(others),
    )


def _all_nodes(wishes: Wishes, overflow: Sequence[_Overflow]) -> Iterator[NodePool]:
    system = wishes.system_nodes
    yield NodePool(
        name="system",
        instance_types=system.instance_types,
        min_nodes=system.min_nodes,
        max_nodes=system.max_nodes,
        disk=_disk(system.disk),
    )
    for name, pool in wishes.gpu_pools.items():
        yield from _pool(name, pool)
    for above in overflow:
        yield _above(above)


def _pool(name: str, pool: _Pool) -> Iterator[NodePool]:
    types = pool.instance_types or (default_instance(pool.accelerator).type,)
    floor = pool.warm_floor
    for source in pool.capacity:
        # The floor rests on the first nodes that stay until they are let go.
        least, floor = (floor, 0) if source.kind in _KEPT else (0, floor)
        anything: Any = source
        most = getattr(anything, "nodes", None) or getattr(anything, "max_nodes", None)
        yield NodePool(
            name=name if source.kind == "on-demand" else f"{name} ({source.kind})",
            instance_types=types,
            min_nodes=least,
            max_nodes=max(most or pool.max_nodes, least),
            capacity=source.kind,
            disk=_disk(pool.disk),
        )


def _above(pool: _Overflow) -> NodePool:
    """Karpenter's nodes as those of the type with which as many GPUs cost most."""

    def dollars(it: Instance) -> float:
        return (it.usd_per_hour or 0) * (pool.max_gpus // it.gpus)

    dearest = max((it for it in pool.types if it.gpus <= pool.max_gpus), key=dollars)
    return NodePool(
        name=f"{pool.name} (overflow)",
        instance_types=(dearest.type,),
        min_nodes=0,
        max_nodes=pool.max_gpus // dearest.gpus,
        disk=_disk(pool.disk),
    )


def _disk(disk: _Disk) -> Disk:
    return Disk(gib=disk.gib, iops=disk.iops, throughput_mib=disk.throughput_mib)
