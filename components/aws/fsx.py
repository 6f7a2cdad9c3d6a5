"""FSx for Lustre: a file system over the weights' bucket, for many nodes that load the same."""

from typing import Annotated, Literal

import pulumi
import pulumi_aws as aws
from pydantic import AfterValidator, Field

from ..contracts import In
from ..domain.args import Args
from . import doors

_SMALLEST_GIB, _STEP_GIB = 1200, 2400
_PORTS = [(988, 988), (1018, 1023)]
"""Lustre's (FSx for Lustre user guide, limiting access with security groups)."""
_WEIGHTS = "/weights"


def _capacity(value: int) -> int:
    if value != _SMALLEST_GIB and (value < _STEP_GIB or value % _STEP_GIB):
        raise ValueError(
            f"{value} isn't a size of such a file system: use {_SMALLEST_GIB}, {_STEP_GIB}, or a "
            f"multiple of {_STEP_GIB} (GiB)"
        )
    return value


class LustreArgs(Args):
    """How large and how fast the file system is, and what it shows."""

    subnet_id: In[str]
    """The subnet of the zone whose nodes use it: a file system is in one zone, and other zones pay
    for each gigabyte that they read."""
    vpc_id: In[str]
    """The VPC."""
    clients: doors.Clients
    """Who may mount it."""
    weights_name: In[str]
    """The weights' bucket."""
    prefix: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9!_.-]*/)*$")
    """What keys begin with that are shown; all when left out."""
    capacity_gib: Annotated[int, AfterValidator(_capacity)] = _SMALLEST_GIB
    """Its size: 1200, 2400, or a multiple of 2400 (FSx API, ``CreateFileSystem``)."""
    throughput: Literal[125, 250, 500, 1000] = 1000
    """MB/s for each TiB of its size."""
    key_arn: In[str]
    """The KMS key of the file system. The bucket's key must let FSx use it: ``lustre=True`` there.
    """


class Lustre(pulumi.ComponentResource):
    """A Lustre file system in one zone that shows the weights' bucket under ``/weights``.

    Creates the file system (SSD, persistent), a security group, and the association with the
    bucket: what is published appears by itself, is copied when it is first read, and nothing is
    ever written back. It pays when many nodes load the same weights of more than 100 GB. There are
    no backups, since the bucket has everything.
    """

    file_system_id: pulumi.Output[str]
    dns_name: pulumi.Output[str]
    mount_name: pulumi.Output[str]
    weights_path: str
    """Where the weights are below the mount."""

    def __init__(
        self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Lustre", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        door = doors.admit(
            f"{name}-door",
            vpc_id=args.vpc_id,
            clients=args.clients,
            ports=_PORTS,
            description="Lustre of the platform",
            opts=child,
        )
        self._among_servers(name, door)
        system = aws.fsx.LustreFileSystem(
            f"{name}-file-system",
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            file_system_type_version="2.15",
            storage_capacity=args.capacity_gib,
            per_unit_storage_throughput=args.throughput,
            # Weights don't compress.
            data_compression_type="NONE",
            subnet_ids=args.subnet_id,
            security_group_ids=[door.id],
            kms_key_id=args.key_arn,
            automatic_backup_retention_days=0,
            skip_final_backup=True,
            tags={"Name": name},
            opts=child,
        )
        aws.fsx.DataRepositoryAssociation(
            f"{name}-weights",
            file_system_id=system.id,
            file_system_path=_WEIGHTS,
            data_repository_path=pulumi.Output.format(
                "s3://{0}/{1}", args.weights_name, args.prefix
            ),
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=True,
            s3={"auto_import_policy": {"events": ["NEW", "CHANGED", "DELETED"]}},
            opts=child,
        )
        self.weights_path = _WEIGHTS
        self.file_system_id = system.id
        self.dns_name = system.dns_name
        self.mount_name = system.mount_name
        self.register_outputs(
            {
                "file_system_id": self.file_system_id,
                "dns_name": self.dns_name,
                "mount_name": self.mount_name,
            }
        )

    def _among_servers(self, name: str, door: aws.ec2.SecurityGroup) -> None:
        """Let the file system's servers talk to each other, which they do at the same ports."""
        for first, last in _PORTS:
            for kind in (aws.vpc.SecurityGroupIngressRule, aws.vpc.SecurityGroupEgressRule):
                way = "from" if kind is aws.vpc.SecurityGroupIngressRule else "to"
                kind(
                    f"{name}-door-{way}-itself-{first}",
                    security_group_id=door.id,
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    referenced_security_group_id=door.id,
                    description=f"{way.capitalize()} its own servers",
                    opts=pulumi.ResourceOptions(parent=self),
                )
