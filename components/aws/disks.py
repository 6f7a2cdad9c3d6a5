"""Disks of pods: a storage class that encrypts them."""

import pulumi
import pulumi_kubernetes as k8s

from ..domain import labels
from ..domain.args import Args
from ..domain.names import K8sName

_COMPONENT = "disks"


class EncryptedDisksArgs(Args):
    """What the class is called."""

    name: K8sName = "encrypted"
    """Its name, which claims of disks say."""
    default: bool = True
    """Whether claims that name no class get this one; a cluster needs exactly one default."""


class EncryptedDisks(pulumi.ComponentResource):
    """Encrypted gp3 volumes for pods, made in the zone where the pod runs.

    Creates a StorageClass of the EBS CSI driver. Disks are encrypted with the account's own key for
    EBS, end with their claims, and can grow.
    """

    storage_class: pulumi.Output[str]
    """The name that claims say."""

    def __init__(
        self, name: str, args: EncryptedDisksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:EncryptedDisks", name, None, opts)
        default = str(args.default).lower()
        made = k8s.storage.v1.StorageClass(
            f"{name}-class",
            metadata={
                "name": args.name,
                "labels": labels.common(_COMPONENT, args.name),
                "annotations": {"storageclass.kubernetes.io/is-default-class": default},
            },
            provisioner="ebs.csi.aws.com",
            parameters={"type": "gp3", "encrypted": "true"},
            reclaim_policy="Delete",
            allow_volume_expansion=True,
            # A disk belongs to a zone, and only the scheduler knows which one the pod will be in.
            volume_binding_mode="WaitForFirstConsumer",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.storage_class = made.metadata["name"]
        self.register_outputs({"storage_class": self.storage_class})
