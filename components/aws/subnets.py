"""How a VPC's addresses are shared out; pure, so that it can be looked at without Pulumi."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

SMALLEST_PREFIX = 20
"""The longest prefix of a VPC: its public subnets then have 16 addresses, AWS's least."""
LARGEST_PREFIX = 16
"""The shortest prefix of a VPC that AWS takes."""
MOST_ZONES = 6
"""The zones of the largest region, us-east-1."""
_NODE_BITS = 4
_PUBLIC_BITS = 8
_PUBLIC_SLOT = 12


@dataclass(frozen=True, kw_only=True)
class ZoneSubnets:
    """The three ranges of one zone."""

    private: str
    """For pods, system nodes and data services."""
    gpu: str
    """For GPU nodes, which are often bound to one zone."""
    public: str
    """For load balancers and NAT gateways."""


def shared_out(cidr: str, zones: Sequence[str]) -> Mapping[str, ZoneSubnets]:
    """Share a VPC's range out between zones, by their place in the list.

    Of a /16, each zone gets a /20 of 4,091 addresses for nodes and pods, as much for GPU nodes, and
    a /24 for load balancers. A zone that is added at the end changes no other's ranges.
    """
    network = IPv4Network(cidr)
    parts = list(network.subnets(prefixlen_diff=_NODE_BITS))
    public = list(parts[_PUBLIC_SLOT].subnets(prefixlen_diff=_PUBLIC_BITS - _NODE_BITS))
    return {
        zone: ZoneSubnets(
            private=str(parts[index]),
            gpu=str(parts[MOST_ZONES + index]),
            public=str(public[index]),
        )
        for index, zone in enumerate(zones)
    }
