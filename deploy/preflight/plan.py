"""What an environment on AWS wants, as far as something outside of it must allow it."""

from dataclasses import dataclass
from typing import Literal

Capacity = Literal["on-demand", "spot", "reservation", "capacity-block"]


@dataclass(frozen=True, kw_only=True)
class WantedNodes:
    """One group of nodes.

    Args:
        name: What the report calls it.
        instance_types: In order of preference.
        zones: Where they may be.
        least: Nodes that are always there.
        most: Nodes at most.
        capacity: How they are bought.
        reservation: The capacity reservation, or the one behind a capacity block, that they use.
        most_vcpus: Virtual processors of all of them at most; those of ``most`` nodes of the
            largest type when left out.
    """

    name: str
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    least: int
    most: int
    capacity: Capacity = "on-demand"
    reservation: str | None = None
    most_vcpus: int | None = None


@dataclass(frozen=True, kw_only=True)
class PreflightPlan:
    """All that is checked before an environment is brought up.

    Args:
        environment: Its name, such as ``dev-aws``.
        region: Where it is.
        zones: The zones of its network.
        nodes: Its groups of nodes, those of the system among them.
        kubernetes_version: Such as ``1.35``.
        cluster: The EKS cluster's name, of the one that it uses or makes.
        private_api: Whether only the network inside reaches the cluster's API.
        makes_cluster: Whether it makes its cluster; not where it uses one that is there.
        makes_network: Whether it makes its network.
        nat_gateways: NAT gateways that it makes, each with an address of its own.
        endpoints: Services that its network has an interface endpoint of.
        database: Whether it makes a database.
        cache: Whether it makes a cache.
        account_id: The account that it must be; any when left out.
        gateway_domain: The gateway's name in DNS; none when left out.
    """

    environment: str
    region: str
    zones: tuple[str, ...]
    nodes: tuple[WantedNodes, ...] = ()
    kubernetes_version: str
    cluster: str
    private_api: bool = True
    makes_cluster: bool = True
    makes_network: bool = True
    nat_gateways: int = 0
    endpoints: int = 0
    database: bool = True
    cache: bool = True
    account_id: str | None = None
    gateway_domain: str | None = None
