"""Secrets that nobody chooses: made once, kept in AWS Secrets Manager, never shown."""

import json
import secrets
from collections.abc import Mapping
from typing import Annotated

import pulumi
import pulumi_aws as aws
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from . import limits

_BYTES = 32
"""43 characters of letters, digits, ``-`` and ``_``: within what ElastiCache takes (16 to 128)."""


class StoredSecretArgs(Args):
    """Which random values a secret holds."""

    description: str
    """What it is for."""
    keys: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], ...] = Field(min_length=1)
    """One random value is made for each; they are fixed once the secret is made."""
    key_arn: In[str]
    """The KMS key that it is encrypted with."""
    ephemeral: bool = False
    """Whether it is deleted at once; without it, it can be had back for 30 days."""


class StoredSecret(pulumi.ComponentResource):
    """A secret with random values that are made when it is created and never change afterwards.

    Creates a secret of Secrets Manager and its first version. The values are there and, encrypted,
    in the stack's state. To renew them, replace the version:
    ``pulumi up --target-replace <its URN>``.
    """

    arn: pulumi.Output[str]
    values: Mapping[str, pulumi.Output[str]]
    """The values by key; secret."""

    def __init__(
        self, name: str, args: StoredSecretArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:StoredSecret", name, None, opts)
        self._name = name
        child = pulumi.ResourceOptions(parent=self)
        secret = aws.secretsmanager.Secret(
            f"{name}-secret",
            description=args.description,
            kms_key_id=args.key_arn,
            recovery_window_in_days=0 if args.ephemeral else limits.KMS_LONGEST_WAIT_DAYS,
            opts=child,
        )
        text = json.dumps({key: secrets.token_urlsafe(_BYTES) for key in args.keys})
        # Every run proposes new values; ignoring the change keeps those of the first run.
        version = aws.secretsmanager.SecretVersion(
            f"{name}-version",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(text),
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["secretString"],
                additional_secret_outputs=["secretString"],
            ),
        )
        self.arn = secret.arn
        self.values = {key: self._read(version, key) for key in args.keys}
        self.register_outputs({"arn": self.arn, "values": self.values})

    def _read(self, version: aws.secretsmanager.SecretVersion, key: str) -> pulumi.Output[str]:
        def find(text: str | None) -> str:
            values: dict[str, str] = json.loads(text or "{}")
            if key not in values:
                raise pulumi.RunError(
                    f"the secret of {self._name} was made without the key {key!r}, and the keys of "
                    "a stored secret are fixed: make another StoredSecret for it, or replace the "
                    "version of this one to renew all of its values"
                )
            return values[key]

        return pulumi.Output.secret(version.secret_string.apply(find))
