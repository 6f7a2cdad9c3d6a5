"""Ways from a VPC to AWS's services that don't cross the internet."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
from pydantic import Field

from ..contracts import In
from ..domain.args import Args

INTERFACE_SERVICES = (
    "autoscaling",
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "eks",
    "eks-auth",
    "elasticloadbalancing",
    "kms",
    "logs",
    "secretsmanager",
    "sqs",
    "ssm",
    "sts",
)
"""What nodes, controllers and the platform's programs call (EKS user guide, private clusters;
``sqs``, ``kms`` and ``secretsmanager`` are the platform's own)."""
_HTTPS = 443


class VpcEndpointsArgs(Args):
    """Which services, and who may call them."""

    vpc_id: In[str]
    """The VPC."""
    cidr: In[str]
    """Its range, whose addresses may call the endpoints."""
    region: str
    """Its region, which the services' names contain."""
    subnet_ids: tuple[In[str], ...]
    """Where the interface endpoints have their addresses: one subnet of each zone."""
    route_table_ids: tuple[In[str], ...]
    """The tables that lead to S3."""
    services: tuple[str, ...] = Field(default=INTERFACE_SERVICES)
    """The services with an interface endpoint, without ``com.amazonaws`` and the region."""


class VpcEndpoints(pulumi.ComponentResource):
    """A gateway endpoint for S3, and interface endpoints for the services named.

    Creates the VPC endpoints and, if any is an interface endpoint, a security group that lets the
    VPC's addresses call them by HTTPS. Layers of images and weights come through the gateway
    endpoint, which costs nothing; through NAT each gigabyte would be paid for.
    """

    security_group_id: pulumi.Output[str] | None
    """The security group of the interface endpoints; none where there are none."""
    ready: Sequence[pulumi.Resource]
    """The endpoints, which nodes need."""

    def __init__(
        self, name: str, args: VpcEndpointsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:VpcEndpoints", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        s3 = aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=args.vpc_id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=list(args.route_table_ids),
            tags={"Name": f"{name}-s3"},
            opts=self._child,
        )
        group = self._security_group() if args.services else None
        self.security_group_id = None if group is None else group.id
        interfaces = [] if group is None else [self._interface(it, group) for it in args.services]
        self.ready = [s3, *interfaces]
        self.register_outputs({})

    def _security_group(self) -> aws.ec2.SecurityGroup:
        group = aws.ec2.SecurityGroup(
            f"{self._name}-https",
            vpc_id=self._args.vpc_id,
            description="HTTPS from the VPC to endpoints of AWS services",
            tags={"Name": f"{self._name}-https"},
            opts=self._child,
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-https-from-vpc",
            security_group_id=group.id,
            description="The VPC's own addresses",
            cidr_ipv4=self._args.cidr,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            opts=self._child,
        )
        return group

    def _interface(self, service: str, group: aws.ec2.SecurityGroup) -> aws.ec2.VpcEndpoint:
        return aws.ec2.VpcEndpoint(
            f"{self._name}-{service.replace('.', '-')}",
            vpc_id=self._args.vpc_id,
            service_name=f"com.amazonaws.{self._args.region}.{service}",
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=list(self._args.subnet_ids),
            security_group_ids=[group.id],
            tags={"Name": f"{self._name}-{service}"},
            opts=self._child,
        )
