"""Where GPUs come from: reserved, bought as they are needed, or such as may be taken away."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, cast

from pydantic import Discriminator, Field, Tag

from ..contracts import In
from ..domain.args import Args
from ..domain.aws_zones import Zone
from ..domain.names import K8sName
from .limits import EKS_NODE_GROUP, autonamed

NodeGroupCapacity = Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]


class OnDemand(Args):
    """Bought by the second while there are any; the price is the list's."""

    kind: Literal["on-demand"] = "on-demand"
    """Says that they are bought as they are needed."""
    name: K8sName | None = None
    """What its node group is called; its kind when left out."""
    max_nodes: int | None = Field(default=None, ge=1)
    """The most of them; the pool's own when left out."""


class Spot(Args):
    """Cheap and taken away with two minutes' notice, less than a large model needs to drain.

    For batches and small models. A worker with several GPUs is most of the time a large model.
    """

    kind: Literal["spot"] = "spot"
    """Says that they may be taken away."""
    name: K8sName | None = None
    """What its node group is called; its kind when left out."""
    max_nodes: int | None = Field(default=None, ge=1)
    """The most of them; the pool's own when left out."""


class Reservation(Args):
    """An on-demand capacity reservation, paid for whether it is used or not."""

    kind: Literal["reservation"] = "reservation"
    """Says that they are reserved."""
    name: K8sName | None = None
    """What its node group is called; its kind and zone when left out."""
    reservation_id: In[str]
    """The reservation, ``cr-…``; it must be of the pool's only instance type."""
    zone: Zone
    """The one zone that it is in."""
    nodes: int = Field(ge=1)
    """The instances that it has."""


class CapacityBlock(Args):
    """GPUs for some days, bought ahead of time; EKS drains them 40 minutes before the end.

    It begins with no node: while the block hasn't begun, AWS would refuse any.
    """

    kind: Literal["capacity-block"] = "capacity-block"
    """Says that they are a block."""
    name: K8sName | None = None
    """What its node group is called; its kind and zone when left out."""
    reservation_id: In[str]
    """The block's reservation, ``cr-…``; it must be of the pool's only instance type."""
    zone: Zone
    """The one zone that it is in."""
    nodes: int = Field(ge=1)
    """The instances that it has."""


Reserved = Reservation | CapacityBlock
AnyCapacity = OnDemand | Spot | Reserved


def _kind_of(value: object) -> str:
    if isinstance(value, Mapping):
        return str(cast("Mapping[str, object]", value).get("kind", ""))
    return str(getattr(value, "kind", ""))


Capacity = Annotated[
    Annotated[OnDemand, Tag("on-demand")]
    | Annotated[Spot, Tag("spot")]
    | Annotated[Reservation, Tag("reservation")]
    | Annotated[CapacityBlock, Tag("capacity-block")],
    # A function, for the base of all args looks at every field first.
    Discriminator(_kind_of),
]
"""One source of nodes; settings tell them apart by ``kind``."""


def suffix_of(capacity: AnyCapacity) -> str:
    """Return what a node group's name ends with. It stays the same when others come or go."""
    if capacity.name is not None:
        return capacity.name
    if isinstance(capacity, Reservation | CapacityBlock):
        return f"{capacity.kind}-{capacity.zone}"
    return capacity.kind


def eks_capacity_type(capacity: AnyCapacity) -> NodeGroupCapacity:
    """Return EKS's name for it; to EKS a reservation is on demand with a target."""
    if isinstance(capacity, Spot):
        return "SPOT"
    return "CAPACITY_BLOCK" if isinstance(capacity, CapacityBlock) else "ON_DEMAND"


def can_be_kept(capacity: AnyCapacity) -> bool:
    """Say whether nodes of it stay until we let them go, so that a floor may rest on them."""
    return isinstance(capacity, OnDemand | Reservation)


def node_group_name(pool: str, capacity: AnyCapacity) -> str:
    """Return what the name of a node group begins with; Pulumi adds a few digits."""
    return autonamed(pool, suffix_of(capacity), limit=EKS_NODE_GROUP)


def group_patterns(pool: str, capacity: Sequence[AnyCapacity]) -> tuple[str, ...]:
    """Return patterns of the Auto Scaling groups' names, the preferred one first.

    EKS calls the group of a node group ``eks-<node group>-<uuid>``. They are plain, so that the
    cluster autoscaler can be told its order before there are any.
    """
    names = (re.escape(node_group_name(pool, it)).replace(r"\-", "-") for it in capacity)
    return tuple(f"^eks-{name}-[0-9a-f]{{7}}-.*" for name in names)
