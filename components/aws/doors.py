"""Who may connect to a data service: security groups that admit the named and nobody else."""

from collections.abc import Mapping, Sequence
from typing import Self

import pulumi
import pulumi_aws as aws
from pydantic import Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName


class Clients(Args):
    """Who may connect; each has a name, so that another one is a rule more and moves none."""

    security_groups: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """Security groups whose members may, such as that of the cluster's nodes."""
    cidrs: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """Ranges of addresses that may, such as the VPC's."""

    @model_validator(mode="after")
    def _anybody(self) -> Self:
        if not self.security_groups and not self.cidrs:
            raise ValueError(
                "security_groups and cidrs are empty, so that nobody could connect: name at least "
                "the cluster's security group"
            )
        both = sorted(self.security_groups.keys() & self.cidrs.keys())
        if both:
            raise ValueError(f"security_groups and cidrs both have {both}: each name is one rule's")
        world = [name for name, cidr in self.cidrs.items() if cidr in {"0.0.0.0/0", "::/0"}]
        if world:
            raise ValueError(f"cidrs: {world} is the whole internet, which no data service admits")
        return self


def admit(
    name: str,
    *,
    vpc_id: In[str],
    clients: Clients,
    ports: Sequence[tuple[int, int]],
    description: str,
    opts: pulumi.ResourceOptions,
) -> aws.ec2.SecurityGroup:
    """Create a security group that lets clients in at some ports, and nothing out.

    Args:
        name: What the names of the resources begin with.
        vpc_id: Where it is.
        clients: Who may connect.
        ports: Ranges of TCP ports, each from its first to its last.
        description: What it protects; fixed once it is made.
        opts: Options of the resources, their parent above all.
    """
    group = aws.ec2.SecurityGroup(
        name, description=description, vpc_id=vpc_id, tags={"Name": name}, opts=opts
    )
    peers = [
        *((client, peer, None) for client, peer in clients.security_groups.items()),
        *((client, None, cidr) for client, cidr in clients.cidrs.items()),
    ]
    for client, peer, cidr in peers:
        for first, last in ports:
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-from-{client}-{first}",
                security_group_id=group.id,
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                referenced_security_group_id=peer,
                cidr_ipv4=cidr,
                description=f"From {client}",
                opts=opts,
            )
    return group
