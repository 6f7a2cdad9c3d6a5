"""Secrets that nobody chooses: made once, kept in the cluster, never shown."""

import base64
import secrets
from collections.abc import Mapping
from typing import Annotated

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName
from . import workload

_BYTES = 32

SecretKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
"""A key of a Secret that can be named in a property path without quoting."""


class GeneratedSecretArgs(Args):
    """Which random values a Secret holds."""

    namespace: In[str]
    """Where it stands."""
    name: K8sName
    """The Secret's name."""
    keys: tuple[SecretKey, ...] = Field(default=("password",), min_length=1)
    """One random value is made for each; they are fixed once the Secret is made."""
    prefix: str = Field(default="", pattern=r"^[a-z-]*$")
    """What each value begins with, so that a leaked one is recognised."""


class GeneratedSecret(pulumi.ComponentResource):
    """A Secret with random values that are made when it is created and never change afterwards.

    Creates one Secret. The values live in the cluster and, encrypted, in the stack's state: a lost
    checkout loses nothing. To renew one, delete the Secret and run ``pulumi up --refresh``.
    """

    values: dict[str, pulumi.Output[str]]
    """The values by key; secret."""
    name: pulumi.Output[str]
    """The Secret's name."""
    secret: k8s.core.v1.Secret

    def __init__(
        self, name: str, args: GeneratedSecretArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:GeneratedSecret", name, None, opts)
        self._name = name
        # Every run proposes new values; ignoring the change keeps those of the first run.
        self.secret = k8s.core.v1.Secret(
            f"{name}-secret",
            metadata=workload.metadata(args.name, args.namespace, component="secret"),
            type="Opaque",
            data={key: pulumi.Output.secret(_generate(args.prefix)) for key in args.keys},
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=[f"data.{key}" for key in args.keys],
                additional_secret_outputs=["data", "stringData"],
            ),
        )
        self.name = self.secret.metadata["name"]
        self.values = {key: self._read(key) for key in args.keys}
        self.register_outputs({"name": self.name, "values": self.values})

    def _read(self, key: str) -> pulumi.Output[str]:
        def decode(data: Mapping[str, str]) -> str:
            if key not in data:
                raise pulumi.RunError(
                    f"the Secret of {self._name} was made without the key {key!r}, and the keys of "
                    "a generated secret are fixed: make another GeneratedSecret for it, or delete "
                    "the Secret and run `pulumi up --refresh` to renew all of its values"
                )
            return base64.b64decode(data[key]).decode()

        return pulumi.Output.secret(self.secret.data.apply(decode))


def _generate(prefix: str) -> str:
    return base64.b64encode(f"{prefix}{secrets.token_urlsafe(_BYTES)}".encode()).decode()
