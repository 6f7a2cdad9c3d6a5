"""An environment on AWS as the sizes and numbers that cost money."""

from decimal import Decimal
from typing import Literal, Self

from pydantic import Field, model_validator

from components.domain.args import Args

GP3_IOPS, GP3_THROUGHPUT_MIB = 3000, 125
"""What every gp3 volume has without a charge (https://aws.amazon.com/ebs/pricing/)."""

Capacity = Literal["on-demand", "spot", "reservation", "capacity-block"]


class Disk(Args):
    """The gp3 volume that each node of a pool boots from."""

    gib: int = Field(ge=1)
    """Its size in GiB."""
    iops: int = Field(default=GP3_IOPS, ge=GP3_IOPS)
    """Operations per second; those above 3,000 cost extra."""
    throughput_mib: int = Field(default=GP3_THROUGHPUT_MIB, ge=GP3_THROUGHPUT_MIB)
    """Throughput; what is above 125 costs extra."""


class NodePool(Args):
    """A pool of nodes between two numbers."""

    name: str = Field(min_length=1)
    """What the bill calls it."""
    instance_types: tuple[str, ...] = Field(min_length=1)
    """In order of preference. The floor is priced with the first, the maximum with the dearest."""
    min_nodes: int = Field(ge=0)
    """Nodes that are always there."""
    max_nodes: int = Field(ge=0)
    """Nodes at most."""
    capacity: Capacity = "on-demand"
    """How they are bought."""
    disk: Disk
    """What each boots from."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_nodes < self.min_nodes:
            raise ValueError(
                f"max_nodes={self.max_nodes} is below min_nodes={self.min_nodes} of {self.name!r}"
            )
        return self


class ServerlessDatabase(Args):
    """Aurora whose instances grow and shrink by themselves."""

    min_acu: Decimal = Field(ge=0)
    """Capacity units (ACU) of each instance at least; 0 lets it pause."""
    max_acu: Decimal = Field(gt=0)
    """At most."""
    instances: int = Field(default=1, ge=1)
    """The writer, and its readers."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_acu < self.min_acu:
            raise ValueError(f"max_acu={self.max_acu} is below min_acu={self.min_acu}")
        return self


class DatabaseInstances(Args):
    """Aurora on instances of one class."""

    instance_class: str = Field(pattern=r"^db\.")
    """Such as ``db.r8g.large``."""
    instances: int = Field(default=1, ge=1)
    """The writer, and its readers."""


class CacheNodes(Args):
    """Nodes of ElastiCache that run Valkey."""

    node_type: str = Field(pattern=r"^cache\.")
    """Such as ``cache.t4g.small``."""
    nodes: int = Field(ge=1)
    """The primary, and its replicas."""


class AwsPlan(Args):
    """All of an environment that costs money."""

    environment: str = Field(min_length=1)
    """Its name, such as ``prod-aws``."""
    region: str = Field(min_length=1)
    """Where it is."""
    clusters: int = Field(default=1, ge=0)
    """EKS clusters that it makes; 0 where it uses one that is there."""
    node_pools: tuple[NodePool, ...] = ()
    """System nodes and GPU pools."""
    nat_gateways: int = Field(default=0, ge=0)
    """NAT gateways, with one public address each."""
    endpoints: int = Field(default=0, ge=0)
    """Services that have an interface endpoint."""
    endpoint_zones: int = Field(default=1, ge=1)
    """Zones that each endpoint is in; it is paid per zone."""
    database: ServerlessDatabase | DatabaseInstances | None = None
    """The database, where it makes one."""
    cache: CacheNodes | None = None
    """The cache, where it makes one."""
    load_balancer: Literal["network", "application"] | None = None
    """What stands before the gateway."""
    keys: int = Field(default=0, ge=0)
    """Keys of its own in KMS."""
    secrets: int = Field(default=0, ge=0)
    """Secrets in Secrets Manager."""
    buckets: tuple[str, ...] = ()
    """Buckets by what they hold; how much, nobody knows before."""
    queues: bool = False
    """Whether tasks go over SQS."""
    others: tuple[str, ...] = ()
    """What else it has that this function has no price of, in words."""
