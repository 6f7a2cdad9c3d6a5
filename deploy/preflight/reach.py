"""The environment's cluster, if there is one yet, and whether this machine reaches its API."""

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from .aws import Aws
from .plan import PreflightPlan
from .report import Row, cant_tell, ok, would_fail

CHECK = "reach of the private API"
_WAIT_SECONDS = 5.0
_NEEDED = (
    "run Pulumi from within the network: a runner or CodeBuild in the VPC, a VPN, or a peered "
    "network whose DNS resolves the VPC's names (docs/aws.md)"
)

Connect = Callable[[str, int], None]


def connect(host: str, port: int) -> None:
    """Open a connection and close it.

    Raises:
        OSError: it can't be opened.
    """
    socket.create_connection((host, port), _WAIT_SECONDS).close()


def own_cluster(plan: PreflightPlan, aws: Aws) -> str | None:
    """Return the name of the environment's cluster; nothing before there is one."""
    names = [name for page in aws.pages("eks", "list_clusters") for name in page["clusters"]]
    return plan.cluster if plan.cluster in names else None


def check(
    plan: PreflightPlan, aws: Aws, cluster: str | None, connect_to: Connect = connect
) -> Iterator[Row]:
    """Try the address of the cluster's API, where there is one yet."""
    if not plan.makes_cluster and cluster is None:
        yield would_fail(
            "cluster",
            f"the settings use the EKS cluster {plan.cluster}, which isn't in {plan.region}",
            "correct its name, or the region",
        )
        return
    if not plan.private_api:
        yield ok("reach of the API", "it is public for the networks in the settings")
        return
    if cluster is None:
        yield cant_tell(CHECK, "there is no cluster yet to try it with", _NEEDED)
        return
    endpoint = aws.client("eks").describe_cluster(name=cluster)["cluster"].get("endpoint", "")
    host = urlsplit(endpoint).hostname
    if host is None:
        yield cant_tell(CHECK, f"{cluster} has no address yet", "run it again when it is made")
        return
    try:
        connect_to(host, 443)
    except OSError as error:
        yield would_fail(CHECK, f"{host}:443 can't be reached: {error}", _NEEDED)
    else:
        yield ok(CHECK, f"{host}:443 answers")
