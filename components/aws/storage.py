"""The buckets: weights, results, and state."""

import pulumi
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..foundation import Bucket
from .account import AwsAccount
from .bucket import BucketName, PrivateBucket, PrivateBucketArgs


class AwsStorageArgs(Args):
    """What the buckets keep, and for how long."""

    account: AwsAccount
    """Where they are."""
    key_arn: In[str]
    """The KMS key of their objects."""
    weights_name: BucketName | None = None
    """The name of the weights' bucket, where people want to know it beforehand, as they write it
    into endpoints; one with random digits when left out."""
    weights_old_versions_days: int = Field(default=30, ge=1)
    """How long weights that were deleted can be had back."""
    results_days: int = Field(default=30, ge=1)
    """How long results and large payloads of tasks stay at most. The cacher deletes them earlier,
    seven days after their tasks ended; this clears what it couldn't."""
    state_old_versions_days: int = Field(default=90, ge=1)
    """How long earlier states of Pulumi's stacks can be had back."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: no protection, and deleted with their objects."""


class AwsStorage(pulumi.ComponentResource):
    """The three buckets of an environment; each is a border of what a workload may touch.

    Creates a PrivateBucket for weights, which are published once and never change; one for results
    and large payloads of tasks, kept for a month at most and, once deleted, for a day; one for the
    state of Pulumi's stacks, of which the ten newest versions are always kept.
    """

    weights_name: pulumi.Output[str]
    results_name: pulumi.Output[str]
    state_name: pulumi.Output[str]
    weights: Bucket
    """Where workers read weights; publishing takes rights of its own."""
    results: Bucket
    """Where the gateway keeps results and large payloads of tasks."""
    state: Bucket
    """Where the state of Pulumi's stacks is."""

    def __init__(
        self, name: str, args: AwsStorageArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsStorage", name, None, opts)
        self._args = args
        self._child = pulumi.ResourceOptions(parent=self)
        weights = PrivateBucket(
            f"{name}-weights",
            PrivateBucketArgs(
                account=args.account,
                key_arn=args.key_arn,
                bucket_name=args.weights_name,
                old_versions_days=args.weights_old_versions_days,
                ephemeral=args.ephemeral,
            ),
            self._child,
        )
        results = PrivateBucket(
            f"{name}-results",
            PrivateBucketArgs(
                account=args.account,
                key_arn=args.key_arn,
                expire_days=args.results_days,
                old_versions_days=1,
                ephemeral=args.ephemeral,
            ),
            self._child,
        )
        state = PrivateBucket(
            f"{name}-state",
            PrivateBucketArgs(
                account=args.account,
                key_arn=args.key_arn,
                old_versions_days=args.state_old_versions_days,
                old_versions_kept=10,
                ephemeral=args.ephemeral,
            ),
            self._child,
        )
        self.weights = self._value(weights, read_only=True)
        self.results = self._value(results, read_only=False)
        self.state = self._value(state, read_only=False)
        self.weights_name = weights.bucket_name
        self.results_name = results.bucket_name
        self.state_name = state.bucket_name
        self.register_outputs(
            {
                "weights_name": self.weights_name,
                "results_name": self.results_name,
                "state_name": self.state_name,
            }
        )

    def _value(self, bucket: PrivateBucket, *, read_only: bool) -> Bucket:
        return Bucket(
            name=bucket.bucket_name,
            region=pulumi.Output.from_input(self._args.account.region),
            read_only=read_only,
            key_arn=pulumi.Output.from_input(self._args.key_arn),
        )
