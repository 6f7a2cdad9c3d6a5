"""The network: a VPC of our own, or one that is there."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.aws_zones import region_of
from .endpoints import VpcEndpoints, VpcEndpointsArgs
from .network_args import ExistingNetwork, Nat, NetworkArgs
from .subnets import ZoneSubnets, shared_out

EVERYWHERE = "0.0.0.0/0"
_LOAD_BALANCER_TAGS = {
    "public": {"kubernetes.io/role/elb": "1"},
    "private": {"kubernetes.io/role/internal-elb": "1"},
    "gpu": {},
}
"""What the load balancer controller finds subnets by; it puts none among GPU nodes."""


class Network(pulumi.ComponentResource):
    """Where everything runs: private subnets in each zone, and one of their own for GPU nodes.

    Creates a VPC whose default security group lets nothing through, three subnets in each zone,
    route tables, an internet gateway and NAT gateways, and endpoints for S3 and for AWS's other
    services. With ``existing`` it creates nothing and hands on what it was told.
    """

    vpc_id: pulumi.Output[str]
    cidr: pulumi.Output[str]
    private_subnets: Mapping[str, pulumi.Output[str]]
    """The subnets of pods, system nodes and data services, by zone."""
    public_subnets: Mapping[str, pulumi.Output[str]]
    """Those of load balancers on the internet, by zone; empty where there are none."""
    gpu_subnets: Mapping[str, pulumi.Output[str]]
    """Those of GPU nodes, by zone."""
    endpoints_security_group: pulumi.Output[str] | None
    """The security group of the interface endpoints; none where there are none."""
    region: str
    """The region of its zones."""
    ready: Sequence[pulumi.Resource]
    """What must stand before a node starts, for it couldn't join; on destroy nodes go before."""

    def __init__(
        self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Network", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.ready, self.endpoints_security_group = [], None
        if args.existing is not None:
            self._hand_on(args.existing)
        else:
            self._make()
        self.register_outputs({"vpc_id": self.vpc_id, "cidr": self.cidr})

    def _hand_on(self, existing: ExistingNetwork) -> None:
        self.region = region_of(next(iter(existing.private_subnets)))
        self.vpc_id = pulumi.Output.from_input(existing.vpc_id)
        self.cidr = pulumi.Output.from_input(existing.cidr)
        self.private_subnets = _outputs(existing.private_subnets)
        self.public_subnets = _outputs(existing.public_subnets)
        self.gpu_subnets = _outputs(existing.gpu_subnets) or self.private_subnets

    def _make(self) -> None:
        args = self._args
        self.region = region_of(args.zones[0])
        vpc = aws.ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=args.cidr,
            # Private names of endpoints are answered by the VPC's own resolver.
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags={"Name": self._name},
            opts=self._child,
        )
        aws.ec2.DefaultSecurityGroup(
            f"{self._name}-default", vpc_id=vpc.id, tags=self._named("default"), opts=self._child
        )
        self.vpc_id, self.cidr = vpc.id, vpc.cidr_block
        plan = shared_out(args.cidr, args.zones)
        self.private_subnets = self._subnets("private", plan)
        self.gpu_subnets = self._subnets("gpu", plan)
        self.public_subnets = {} if args.nat is Nat.NONE else self._subnets("public", plan)
        tables = {zone: self._private_table(zone) for zone in args.zones}
        self.ready = [*self._ways_out(tables), *self._endpoints(tables)]

    def _subnets(
        self, kind: str, plan: Mapping[str, ZoneSubnets]
    ) -> Mapping[str, pulumi.Output[str]]:
        return {
            zone: aws.ec2.Subnet(
                f"{self._name}-{kind}-{zone}",
                vpc_id=self.vpc_id,
                availability_zone=zone,
                cidr_block=getattr(ranges, kind),
                map_public_ip_on_launch=False,
                tags={**self._named(f"{kind}-{zone}"), **_LOAD_BALANCER_TAGS[kind]},
                opts=self._child,
            ).id
            for zone, ranges in plan.items()
        }

    def _private_table(self, zone: str) -> aws.ec2.RouteTable:
        """Make a zone's own table, so that a change of ``nat`` is a change of routes only."""
        table = aws.ec2.RouteTable(
            f"{self._name}-private-{zone}",
            vpc_id=self.vpc_id,
            tags=self._named(f"private-{zone}"),
            opts=self._child,
        )
        for kind, subnets in (("private", self.private_subnets), ("gpu", self.gpu_subnets)):
            self._associate(f"{kind}-{zone}", table, subnets[zone])
        return table

    def _associate(
        self, suffix: str, table: aws.ec2.RouteTable, subnet_id: pulumi.Output[str]
    ) -> aws.ec2.RouteTableAssociation:
        return aws.ec2.RouteTableAssociation(
            f"{self._name}-{suffix}",
            route_table_id=table.id,
            subnet_id=subnet_id,
            opts=self._child,
        )

    def _ways_out(self, tables: Mapping[str, aws.ec2.RouteTable]) -> list[pulumi.Resource]:
        """Make the routes to the internet; return what nodes need of them."""
        if not self.public_subnets:
            return []
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-internet",
            vpc_id=self.vpc_id,
            tags=self._named("internet"),
            opts=self._child,
        )
        public = aws.ec2.RouteTable(
            f"{self._name}-public",
            vpc_id=self.vpc_id,
            tags=self._named("public"),
            opts=self._child,
        )
        out = aws.ec2.Route(
            f"{self._name}-public-internet",
            route_table_id=public.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway.id,
            opts=self._child,
        )
        for zone, subnet in self.public_subnets.items():
            self._associate(f"public-{zone}", public, subnet)
        first = self._args.zones[0]
        with_nat = self._args.zones if self._args.nat is Nat.PER_ZONE else (first,)
        nats = {zone: self._nat(zone, out) for zone in with_nat}
        return [
            aws.ec2.Route(
                f"{self._name}-private-{zone}-internet",
                route_table_id=table.id,
                destination_cidr_block=EVERYWHERE,
                nat_gateway_id=nats.get(zone, nats[first]).id,
                opts=self._child,
            )
            for zone, table in tables.items()
        ]

    def _nat(self, zone: str, way_out: pulumi.Resource) -> aws.ec2.NatGateway:
        address = aws.ec2.Eip(
            f"{self._name}-nat-{zone}",
            domain="vpc",
            tags=self._named(f"nat-{zone}"),
            opts=self._child,
        )
        return aws.ec2.NatGateway(
            f"{self._name}-nat-{zone}",
            allocation_id=address.id,
            subnet_id=self.public_subnets[zone],
            tags=self._named(f"nat-{zone}"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[way_out]),
        )

    def _endpoints(self, tables: Mapping[str, aws.ec2.RouteTable]) -> Sequence[pulumi.Resource]:
        endpoints = VpcEndpoints(
            f"{self._name}-endpoints",
            VpcEndpointsArgs(
                vpc_id=self.vpc_id,
                cidr=self.cidr,
                region=self.region,
                subnet_ids=tuple(self.private_subnets.values()),
                route_table_ids=tuple(table.id for table in tables.values()),
                services=self._args.services,
            ),
            self._child,
        )
        self.endpoints_security_group = endpoints.security_group_id
        return endpoints.ready

    def _named(self, suffix: str) -> dict[str, str]:
        return {"Name": f"{self._name}-{suffix}"}


def _outputs(ids: Mapping[str, In[str]]) -> Mapping[str, pulumi.Output[str]]:
    return {zone: pulumi.Output.from_input(value) for zone, value in ids.items()}
