"""What one stack hands to another: typed outputs, one by one, secrets kept secret."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_type_hints

import pulumi

from .domain.names import K8sName

T = TypeVar("T")

In = Union[T, pulumi.Output[T]]  # noqa: UP007 - a generic alias is a Union until PEP 695
"""A value that is only passed on: known now, or an output known after deployment."""


@dataclass(frozen=True, kw_only=True)
class Contract:
    """A set of outputs that one stack publishes and others read; subclasses list them as fields."""

    secret_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that are published as secrets whatever their source was."""

    def publish(self, prefix: str = "") -> None:
        """Export every field as a stack output of its own, its name begun with ``prefix``."""
        for name, value in self.outputs(prefix).items():
            pulumi.export(name, value)

    def outputs(self, prefix: str = "") -> dict[str, pulumi.Output[Any]]:
        """Return what ``publish`` exports."""
        return {
            prefix + field.name: (
                pulumi.Output.secret(getattr(self, field.name))
                if field.name in self.secret_fields
                else getattr(self, field.name)
            )
            for field in fields(self)
        }

    @classmethod
    def read(cls, stack: str | pulumi.StackReference, prefix: str = "") -> Self:
        """Read what another stack has published.

        Args:
            stack: ``organization/project/stack``, or a reference made before.
            prefix: What the names of the outputs begin with.

        Raises:
            pulumi.RunError: (when the value is used) naming the stack and the missing output.
        """
        reference = stack if isinstance(stack, pulumi.StackReference) else _reference(stack)
        return cls(
            **{
                field: _require(reference, prefix + field, kind)
                for field, kind in cls._field_types().items()
            }
        )

    @classmethod
    def _field_types(cls) -> dict[str, type]:
        hints = get_type_hints(cls)
        return {field.name: get_args(hints[field.name])[0] for field in fields(cls)}


def _reference(stack: str) -> pulumi.StackReference:
    return pulumi.StackReference(f"contract-{stack.replace('/', '-')}", stack_name=stack)


def _require(reference: pulumi.StackReference, name: str, kind: type) -> pulumi.Output[Any]:
    def check(given: Sequence[Any]) -> Any:
        stack, value = given
        if value is None:
            raise pulumi.RunError(
                f"stack {stack} has no output {name!r}: it is run by an older version, "
                "its last update failed, or the team isn't declared there. Ask the platform team "
                "to run `pulumi up` on it and to add what is missing to its settings"
            )
        # Numbers travel between stacks as floating point.
        return int(value) if kind is int else value

    return pulumi.Output.all(reference.name, reference.get_output(name)).apply(check)


@dataclass(frozen=True, kw_only=True)
class FoundationContract(Contract):
    """What every cloud's foundation gives to the platform of the same environment."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"kubeconfig"})

    kubeconfig: pulumi.Output[str]
    """Full access to the cluster; only the platform's runner reads it."""
    registry: pulumi.Output[str]
    """What the names of images begin with, for pushing and pulling."""


@dataclass(frozen=True, kw_only=True)
class PlatformContract(Contract):
    """What the platform gives to everyone who uses or deploys to it."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"admin_key"})

    gateway_url: pulumi.Output[str]
    """The gateway for programs in the cluster."""
    gateway_address: pulumi.Output[str]
    """The gateway for programs outside."""
    admin_key: pulumi.Output[str]
    """A key that may call every endpoint."""
    namespace: pulumi.Output[str]
    services_image: pulumi.Output[str]
    """The image of the forwarder that stands beside every model."""
    prometheus_url: pulumi.Output[str]
    """Where the metrics that endpoints scale on are read, for programs in the cluster."""
    redis_address: pulumi.Output[str]
    """Redis as ``host:port``: where tasks wait and activation lists are."""
    cacher_url: pulumi.Output[str]
    """Who tells how many tasks of an endpoint are outstanding."""


@dataclass(frozen=True, kw_only=True)
class TeamContract(Contract):
    """What the platform gives to one team; published with a prefix of the team's own."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"gateway_key", "kubeconfig"})

    namespace: pulumi.Output[str]
    gateway_key: pulumi.Output[str]
    """The key with which the team calls its endpoints."""
    kubeconfig: pulumi.Output[str]
    """Access to the team's namespace and to nothing else."""

    @staticmethod
    def prefix(team: K8sName) -> str:
        """What the names of this team's outputs begin with."""
        return f"team_{team}_"
