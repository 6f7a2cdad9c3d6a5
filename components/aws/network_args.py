"""What a network is made of: a new VPC, or one that is there."""

from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.aws_zones import Zone, zones_problem
from .endpoints import INTERFACE_SERVICES
from .subnets import LARGEST_PREFIX, MOST_ZONES, SMALLEST_PREFIX


class Nat(StrEnum):
    """How private subnets reach the internet."""

    PER_ZONE = "per_zone"
    """One NAT gateway in each zone: a zone's end leaves the others their way out."""
    ONE = "one"
    """One for all: cheaper, and all are cut off with its zone."""
    NONE = "none"
    """Not at all: everything comes through endpoints, and images from the own registry."""


def _vpc_range(value: str) -> str:
    network = IPv4Network(value)
    if not LARGEST_PREFIX <= network.prefixlen <= SMALLEST_PREFIX:
        raise ValueError(f"{value}: a VPC needs a range from /{LARGEST_PREFIX} to /20")
    if not network.is_private:
        raise ValueError(f"{value}: use a private range, such as 10.64.0.0/16")
    return value


class ExistingNetwork(Args):
    """A VPC that is there already, by its ids; nothing in it is made or changed.

    Its private subnets need a way to AWS's services (NAT or endpoints), an S3 gateway endpoint if
    weights aren't to be paid for by the gigabyte, and the tags ``kubernetes.io/role/internal-elb``
    and ``kubernetes.io/role/elb`` if load balancers are to find their place.
    """

    vpc_id: In[str]
    """The VPC."""
    cidr: In[str]
    """Its range of addresses."""
    private_subnets: Mapping[Zone, In[str]] = Field(min_length=2)
    """One private subnet of each zone, by the zone; EKS needs two zones at least."""
    public_subnets: Mapping[Zone, In[str]] = Field(default_factory=dict)
    """One public subnet of each zone, for load balancers on the internet; none when left out."""
    gpu_subnets: Mapping[Zone, In[str]] = Field(default_factory=dict)
    """One subnet of each zone for GPU nodes; the private ones when left out."""


class NetworkArgs(Args):
    """A new VPC, or the one that is there."""

    zones: tuple[Zone, ...] = Field(default=(), max_length=MOST_ZONES)
    """The availability zones, at least two; those of ``existing`` when that is given. Zones are
    only ever added at the end, for the place in the list decides the addresses."""
    cidr: Annotated[str, AfterValidator(_vpc_range)] = "10.64.0.0/16"
    """The new VPC's range; it must not overlap with networks that it is to be joined with."""
    nat: Nat = Nat.PER_ZONE
    """How private subnets reach the internet; a NAT gateway is paid by the hour and by the GB."""
    interface_endpoints: bool | tuple[str, ...] = True
    """AWS's services that are reached without leaving the VPC: all that the platform uses, or those
    named, or none. Each is paid by the hour in each zone. S3 has its gateway endpoint in any case,
    which costs nothing."""
    existing: ExistingNetwork | None = None
    """Use this VPC; the other fields then say nothing."""

    @model_validator(mode="after")
    def _zones_fit(self) -> Self:
        if self.existing is not None:
            self._same_zones(self.existing)
            return self
        if len(self.zones) < 2:
            raise ValueError("zones: name at least two, for EKS needs two")
        problem = zones_problem(self.zones)
        if problem:
            raise ValueError(problem)
        if self.nat is Nat.NONE and not self.services:
            raise ValueError(
                "interface_endpoints=False with nat='none': nodes would reach nothing; "
                "leave interface_endpoints out"
            )
        return self

    def _same_zones(self, existing: ExistingNetwork) -> None:
        known = set(existing.private_subnets)
        problem = zones_problem(tuple(known))
        if problem:
            raise ValueError(f"existing.private_subnets: {problem}")
        if self.zones and set(self.zones) != known:
            raise ValueError(
                f"zones={list(self.zones)}: existing.private_subnets has {sorted(known)}; "
                "leave zones out"
            )
        for field in ("public_subnets", "gpu_subnets"):
            strangers = set(getattr(existing, field)) - known
            if strangers:
                raise ValueError(
                    f"existing.{field}: {sorted(strangers)} have no private subnet; "
                    "every zone needs one"
                )

    @property
    def services(self) -> tuple[str, ...]:
        """The services that get an interface endpoint."""
        if isinstance(self.interface_endpoints, tuple):
            return self.interface_endpoints
        return INTERFACE_SERVICES if self.interface_endpoints else ()
