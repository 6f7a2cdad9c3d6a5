"""Which cluster an environment is brought up on: the lab's, or one that the user names."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.commands import run
from lab.errors import StepError
from lab.progress import Report

from .errors import DeployError
from .images import Registry

STEP = "looking at the cluster"
NODE_PORT = 30080
"""The port that the gateway has on every node, unless a setting says another."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that can be deployed to.

    Args:
        kubeconfig: File that reaches it.
        context: Which of the file's contexts.
        registry: Where images go that its nodes can pull.
        node_address: A node's address that this machine reaches, for the gateway's port; empty
            when that is the API server's host.
    """

    kubeconfig: Path
    context: str
    registry: Registry
    node_address: str = ""

    def gateway_address(self) -> dict[str, str]:
        """The setting that says how the gateway is reached, when it has to be said."""
        if not self.node_address:
            return {}
        return {"llm-platform:gateway.address": f"http://{self.node_address}:{NODE_PORT}"}


def choose(environ: Mapping[str, str], report: Report) -> Cluster:
    """Use the cluster that CONTEXT names, or bring up the lab's.

    Raises:
        DeployError: the named cluster can't be used; the message names the variable.
    """
    if not environ.get("CONTEXT"):
        if environ.get("KUBECONFIG"):
            report(
                "    KUBECONFIG is set but CONTEXT isn't, so the lab's own cluster is used; "
                "to use yours: make up KUBECONFIG=… CONTEXT=… REGISTRY=…"
            )
        return _lab(report)
    return _named(environ)


def fingerprint(kubeconfig: str) -> str:
    """Tell clusters apart by the server and authority that a flat kubeconfig (JSON) names first."""
    entry = json.loads(kubeconfig)["clusters"][0]["cluster"]
    facts = [entry["server"], entry.get("certificate-authority-data", "")]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def named_fingerprint(environ: Mapping[str, str]) -> str:
    """The same of the cluster that CONTEXT names."""
    view = ["config", "view", "--minify", "--flatten", "--raw", "--output", "json"]
    kubeconfig = _kubeconfig(environ)
    command = ["kubectl", "--kubeconfig", kubeconfig, "--context", environ["CONTEXT"], *view]
    return fingerprint(run(STEP, command))


def require_same(deployed: str, cluster: Cluster) -> None:
    """Refuse to move a stack to another cluster: the engine would delete all of it on the first.

    Args:
        deployed: The kubeconfig that the stack was deployed with; empty for a new stack.
        cluster: Where it is to be deployed now.

    Raises:
        DeployError: they aren't the same cluster.
    """
    wanted = {"KUBECONFIG": str(cluster.kubeconfig), "CONTEXT": cluster.context}
    if deployed and fingerprint(deployed) != named_fingerprint(wanted):
        server = json.loads(deployed)["clusters"][0]["cluster"]["server"]
        raise DeployError(
            STEP,
            f"this backend's stacks run on {server}, which isn't the cluster of "
            f"{cluster.context!r}: an update would delete them there. Nothing was changed. Use "
            "another PULUMI_BACKEND_URL, or `make down` with the first cluster's CONTEXT before",
        )


def _kubeconfig(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("KUBECONFIG") or Path.home() / ".kube/config").expanduser()


def _named(environ: Mapping[str, str]) -> Cluster:
    kubeconfig = _kubeconfig(environ)
    context = environ["CONTEXT"]
    if not kubeconfig.is_file():
        raise DeployError(STEP, f"KUBECONFIG: there is no file {kubeconfig}")
    address = environ.get("REGISTRY", "")
    if not address:
        raise DeployError(
            STEP,
            "REGISTRY is missing: say where the images may be pushed so that the nodes of "
            f"{context!r} can pull them, such as REGISTRY=registry.example.com/llm-platform "
            "(http://… for one without TLS)",
        )
    if shutil.which("kubectl") is None:
        raise DeployError(
            STEP, "kubectl isn't on PATH; it's needed to look at the cluster of CONTEXT"
        )
    try:
        run(
            STEP,
            [
                *("kubectl", "--kubeconfig", kubeconfig, "--context", context),
                *("--request-timeout=10s", "get", "--raw", "/readyz"),
            ],
        )
    except StepError as error:
        raise DeployError(
            STEP,
            f"cluster unreachable: context {context!r} of {kubeconfig}. Nothing was changed.\n"
            f"{error.reason}",
        ) from error
    return Cluster(
        kubeconfig,
        context,
        Registry(address.removeprefix("http://").rstrip("/"), address.startswith("http://")),
        environ.get("NODE_ADDRESS", ""),
    )


def _lab(report: Report) -> Cluster:
    from lab import cluster as lab  # noqa: PLC0415 - not needed, nor there, beside a real cluster

    info = lab.up(report)
    return Cluster(
        Path(info.kubeconfig),
        info.context,
        Registry(f"{info.registry}/llm-platform", insecure=True),
    )
