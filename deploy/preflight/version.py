"""Whether EKS still supports the Kubernetes version, and how long."""

from collections.abc import Iterator

from .aws import Aws
from .plan import PreflightPlan
from .report import Row, ok, would_fail

_STANDARD = "STANDARD_SUPPORT"


def check(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Ask EKS for its versions."""
    title = f"Kubernetes {plan.kubernetes_version}"
    versions = [
        version
        for page in aws.pages("eks", "describe_cluster_versions", includeAll=True)
        for version in page["clusterVersions"]
    ]
    supported = ", ".join(
        sorted(it["clusterVersion"] for it in versions if it.get("versionStatus") == _STANDARD)
    )
    ours = [it for it in versions if it["clusterVersion"] == plan.kubernetes_version]
    if not ours:
        yield would_fail(title, "EKS has no such version", f"choose among {supported}")
        return
    end = ours[0].get("endOfStandardSupportDate")
    until = f"{end:%Y-%m-%d}" if end else "an unknown day"
    if ours[0].get("versionStatus") == _STANDARD:
        yield ok(title, f"in standard support until {until}")
    else:
        # Standard support can't be chosen for it any more (EKS's user guide, create-cluster).
        yield would_fail(
            title,
            f"its standard support ended on {until}, and clusters here have no extended one",
            f"choose among {supported}",
        )
