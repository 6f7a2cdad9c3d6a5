"""A namespace that refuses insecure pods and lets nothing talk to anything."""

import pulumi
import pulumi_kubernetes as k8s

from ..domain import labels
from ..domain.args import Args
from ..domain.names import K8sName
from . import network


class NamespaceArgs(Args):
    """Which namespace."""

    name: K8sName
    """The namespace's name."""
    team: K8sName | None = None
    """The team that owns everything in it; none for the platform's own."""


class Namespace(pulumi.ComponentResource):
    """A namespace under Pod Security ``restricted`` with a default-deny network policy.

    Creates a Namespace and a NetworkPolicy. Pods in it may resolve names and nothing else until a
    policy opens a path.
    """

    name: pulumi.Output[str]
    namespace: k8s.core.v1.Namespace
    """For ``deleted_with``: what stands in it needn't be deleted one by one."""

    def __init__(
        self, name: str, args: NamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Namespace", name, None, opts)
        team = {labels.TEAM: args.team} if args.team else {}
        self.namespace = k8s.core.v1.Namespace(
            f"{name}-namespace",
            metadata={
                "name": args.name,
                "labels": {
                    **labels.common("namespace", args.name),
                    **team,
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/warn": "restricted",
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = self.namespace.metadata["name"]
        network.default_deny(
            name,
            self.name,
            pulumi.ResourceOptions(parent=self, deleted_with=self.namespace),
        )
        self.register_outputs({"name": self.name})
