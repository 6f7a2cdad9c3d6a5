"""Service-linked roles: the first use of a service makes its own, for who may do that."""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from .aws import Aws, code_of
from .plan import PreflightPlan
from .report import Row, cant_tell, ok


def _wanted(plan: PreflightPlan) -> Iterator[tuple[str, str]]:
    """The name of each role, and the service whose it is."""
    if plan.makes_cluster:
        yield "AWSServiceRoleForAmazonEKS", "eks.amazonaws.com"
    yield "AWSServiceRoleForAmazonEKSNodegroup", "eks-nodegroup.amazonaws.com"
    yield "AWSServiceRoleForAutoScaling", "autoscaling.amazonaws.com"
    yield "AWSServiceRoleForElasticLoadBalancing", "elasticloadbalancing.amazonaws.com"
    if plan.database:
        yield "AWSServiceRoleForRDS", "rds.amazonaws.com"
    if plan.cache:
        yield "AWSServiceRoleForElastiCache", "elasticache.amazonaws.com"
    if any(nodes.capacity == "spot" for nodes in plan.nodes):
        yield "AWSServiceRoleForEC2Spot", "spot.amazonaws.com"


def check(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """See which roles are there."""
    iam = aws.client("iam")
    for name, service in _wanted(plan):
        title = f"role {name.removeprefix('AWSServiceRoleFor')}"
        try:
            iam.get_role(RoleName=name)
        except ClientError as error:
            if code_of(error) != "NoSuchEntity":
                raise
            yield cant_tell(
                title,
                "not there yet; the first use makes it if these credentials may do "
                "iam:CreateServiceLinkedRole",
                f"to be sure: aws iam create-service-linked-role --aws-service-name {service}",
            )
        else:
            yield ok(title)
