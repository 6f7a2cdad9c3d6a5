"""What leads to the gateway from outside: a load balancer, a certificate, and a name."""

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Annotated, Self

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pydantic import AfterValidator, Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.names import safe_name
from ..kube import workload
from .limits import LOAD_BALANCER, TARGET_GROUP, autonamed

DOMAIN = r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$"
"""A name in DNS, wholly written out."""
_TLS = "ELBSecurityPolicy-TLS13-1-2-2021-06"
"""TLS 1.3 and 1.2 (ALB user guide, "Security policies", read 2026-11)."""
_LONGEST_IDLE_SECONDS = 4000
"""Of an application load balancer (ALB user guide, "Load balancer attributes")."""


def _range(value: str) -> str:
    try:
        return str(IPv4Network(value))
    except ValueError as error:
        raise ValueError(
            f"{value!r} isn't a range of IPv4 addresses ({error}): write such as 10.0.0.0/8"
        ) from None


ClientRange = Annotated[str, AfterValidator(_range)]
"""A range of IPv4 addresses; the door has no others."""


class GatewayDoorArgs(Args):
    """Where the gateway is, how it is called, and who may come."""

    vpc_id: In[str]
    """The VPC."""
    subnet_ids: In[Sequence[str]]
    """Subnets in at least two zones: public ones for a door to the internet."""
    node_security_group: In[str]
    """The security group of the pods, which lets this door in."""
    namespace: In[str]
    """The gateway's namespace."""
    service: In[str]
    """Its Service, with a port 80."""
    pod_port: int = Field(ge=1, le=65_535)
    """The port of its pods."""
    domain: str = Field(pattern=DOMAIN, max_length=253)
    """What clients call it, such as ``llm.example.com``."""
    zone_id: In[str] | None = None
    """The Route 53 zone that the name is written into."""
    certificate_arn: In[str] | None = None
    """A certificate of ACM for the name; made and proven in the zone when left out."""
    public: bool = False
    """Whether it has public addresses."""
    clients: tuple[ClientRange, ...] = Field(min_length=1)
    """Ranges of addresses that may come in."""
    request_timeout_seconds: int = Field(ge=1)
    """The longest request; a stream that is silent for so long isn't cut off."""
    deletion_protection: bool = True
    """Whether it refuses to be deleted."""

    @model_validator(mode="after")
    def _certificate_can_be_had(self) -> Self:
        if self.certificate_arn is None and self.zone_id is None:
            raise ValueError(
                "zone_id or certificate_arn: say the Route 53 zone of the domain, in which a "
                "certificate is proven, or the certificate that you have"
            )
        return self


class GatewayDoor(pulumi.ComponentResource):
    """An application load balancer that ends TLS and hands requests to the gateway's pods.

    Creates the load balancer with its security group, the rule that lets it in to the pods, a
    target group and a listener on 443; a certificate with its proof and the name in Route 53 where
    the zone is known; and the TargetGroupBinding by which the AWS Load Balancer Controller keeps
    the pods' addresses in the target group. The controller makes no load balancer itself, so that
    none outlives this stack.
    """

    address: pulumi.Output[str]

    def __init__(
        self, name: str, args: GatewayDoorArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:GatewayDoor", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self._group = self._security_group()
        balancer = self._balancer()
        targets = self._targets()
        self._listen(balancer, targets)
        self._bind(targets, opts)
        if args.zone_id is not None:
            self._call_it(balancer, args.zone_id)
        self.address = pulumi.Output.from_input(f"https://{args.domain}")
        self.register_outputs({"address": self.address})

    def _security_group(self) -> aws.ec2.SecurityGroup:
        args = self._args
        group = aws.ec2.SecurityGroup(
            f"{self._name}-door",
            vpc_id=args.vpc_id,
            description="Clients of the gateway",
            opts=self._child,
        )
        for client in args.clients:
            aws.vpc.SecurityGroupIngressRule(
                f"{self._name}-from-{client.replace('/', '-')}",
                security_group_id=group.id,
                cidr_ipv4=client,
                ip_protocol="tcp",
                from_port=443,
                to_port=443,
                opts=self._child,
            )
        for resource_name, rule in {
            "to-pods": aws.vpc.SecurityGroupEgressRule,
            "into-pods": aws.vpc.SecurityGroupIngressRule,
        }.items():
            outward = resource_name == "to-pods"
            rule(
                f"{self._name}-{resource_name}",
                security_group_id=group.id if outward else args.node_security_group,
                referenced_security_group_id=args.node_security_group if outward else group.id,
                ip_protocol="tcp",
                from_port=args.pod_port,
                to_port=args.pod_port,
                opts=self._child,
            )
        return group

    def _balancer(self) -> aws.lb.LoadBalancer:
        args = self._args
        return aws.lb.LoadBalancer(
            autonamed(self._name, "door", limit=LOAD_BALANCER),
            load_balancer_type="application",
            internal=not args.public,
            subnets=args.subnet_ids,
            security_groups=[self._group.id],
            idle_timeout=min(args.request_timeout_seconds + 60, _LONGEST_IDLE_SECONDS),
            drop_invalid_header_fields=True,
            enable_deletion_protection=args.deletion_protection,
            opts=self._child,
        )

    def _targets(self) -> aws.lb.TargetGroup:
        args = self._args
        return aws.lb.TargetGroup(
            autonamed(self._name, "pods", limit=TARGET_GROUP),
            target_type="ip",
            protocol="HTTP",
            port=args.pod_port,
            vpc_id=args.vpc_id,
            # The gateway itself sends each request on to the least busy worker.
            load_balancing_algorithm_type="least_outstanding_requests",
            # A gateway that stops is taken out first and then finishes what it has.
            deregistration_delay=min(args.request_timeout_seconds, 3600),
            health_check={"path": "/readyz", "matcher": "200", "interval": 10, "timeout": 5},
            opts=self._child,
        )

    def _listen(self, balancer: aws.lb.LoadBalancer, targets: aws.lb.TargetGroup) -> None:
        aws.lb.Listener(
            f"{self._name}-https",
            load_balancer_arn=balancer.arn,
            port=443,
            protocol="HTTPS",
            ssl_policy=_TLS,
            certificate_arn=self._args.certificate_arn or self._certificate(),
            default_actions=[{"type": "forward", "target_group_arn": targets.arn}],
            opts=self._child,
        )

    def _certificate(self) -> pulumi.Output[str]:
        certificate = aws.acm.Certificate(
            f"{self._name}-certificate",
            domain_name=self._args.domain,
            validation_method="DNS",
            opts=self._child,
        )
        # One name, so one record that proves it.
        proof = certificate.domain_validation_options[0]
        record = aws.route53.Record(
            f"{self._name}-proof",
            zone_id=self._args.zone_id or "",
            name=proof.resource_record_name,
            type=proof.resource_record_type,
            records=[proof.resource_record_value],
            ttl=300,
            opts=self._child,
        )
        proven = aws.acm.CertificateValidation(
            f"{self._name}-proven",
            certificate_arn=certificate.arn,
            validation_record_fqdns=[record.fqdn],
            opts=self._child,
        )
        return proven.certificate_arn

    def _call_it(self, balancer: aws.lb.LoadBalancer, zone_id: In[str]) -> None:
        aws.route53.Record(
            f"{self._name}-name",
            zone_id=zone_id,
            name=self._args.domain,
            type="A",
            aliases=[
                {
                    "name": balancer.dns_name,
                    "zone_id": balancer.zone_id,
                    "evaluate_target_health": True,
                }
            ],
            opts=self._child,
        )

    def _bind(self, targets: aws.lb.TargetGroup, opts: pulumi.ResourceOptions | None) -> None:
        """Create the binding, which goes before its controller does."""
        k8s.apiextensions.CustomResource(
            f"{self._name}-binding",
            api_version="elbv2.k8s.aws/v1beta1",
            kind="TargetGroupBinding",
            metadata=workload.metadata(
                safe_name("gateway", "door"), self._args.namespace, component="control-plane"
            ),
            spec={
                "serviceRef": {"name": self._args.service, "port": 80},
                "targetGroupARN": targets.arn,
                "targetType": "ip",
            },
            opts=pulumi.ResourceOptions.merge(
                self._child, pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
            ),
        )
