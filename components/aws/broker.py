"""The broker in AWS: SQS, with a queue and a queue of dead letters for each endpoint."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.scaling_source import AWS_AUTHENTICATION
from ..foundation import BrokerKind, Grant, KedaTrigger, Queue, SqsQueues
from . import limits, policies, queues

SPARE_RECEIVES = 5
"""Deliveries beyond those that a task gets: the worker itself moves it to the dead letters, and SQS
also counts what it sent to a worker that was gone (docs/decisions/0011)."""
_LATE_SECONDS = 3600
"""How much longer than its task a message stays, so that the gateway sees it expire first."""


@dataclass(frozen=True, kw_only=True)
class SqsBroker:
    """Carries a team's tasks in queues of Amazon SQS, two for each endpoint.

    Raises:
        ValueError: when the names leave no room for those of endpoints.
    """

    prefix: str
    """What the names of the environment's queues begin with: the environment's own name."""
    team: str
    """Whose endpoints these are."""
    region: In[str]
    """Where the queues are."""
    key_arn: In[str] | None = None
    """The KMS key of the messages; SQS's own when left out."""
    provider: aws.Provider | None = None
    """The access to the account; the program's default one when left out."""

    def __post_init__(self) -> None:
        queues.check_names(self.prefix, self.team)

    @property
    def kind(self) -> BrokerKind:
        """What it is."""
        return "sqs"

    def queue(
        self,
        endpoint: str,
        *,
        team: str,
        namespace: In[str],
        cacher_url: In[str],
        opts: pulumi.ResourceOptions | None = None,
        lease_seconds: int = 60,
        max_deliveries: int = 5,
        expires_seconds: int = 86_400,
    ) -> Queue:
        """Create the queues of an endpoint, and return how its workers and KEDA reach them.

        Args:
            endpoint: Its name.
            team: Whose it is.
            namespace: Where its workers run.
            cacher_url: Not needed: SQS itself tells how many tasks wait or run.
            opts: Options of the resources, their parent above all.
            lease_seconds: How long a task stays with its worker unless that extends it.
            max_deliveries: How often a task is handed to workers.
            expires_seconds: How long a task may wait.

        Raises:
            ValueError: for a team that these queues aren't of.
        """
        del namespace, cacher_url
        if self.provider is not None:
            opts = pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(provider=self.provider)
            )
        if team != self.team:
            raise ValueError(
                f"team={team!r}: this broker has the queues of {self.team!r} alone; "
                "read the platform with the team whose endpoint it is"
            )
        names = queues.names(self.prefix, self.team, endpoint)
        dead = self._queue(
            f"{endpoint}-dead",
            names.dead,
            retention=limits.SQS_LONGEST_RETENTION_SECONDS,
            opts=opts,
        )
        tasks = self._queue(
            f"{endpoint}-tasks",
            names.tasks,
            retention=_within(expires_seconds + _LATE_SECONDS),
            lease_seconds=lease_seconds,
            redrive_policy=pulumi.Output.json_dumps(
                {
                    "deadLetterTargetArn": dead.arn,
                    "maxReceiveCount": min(
                        max_deliveries + SPARE_RECEIVES, limits.SQS_MOST_RECEIVES
                    ),
                }
            ),
            opts=opts,
        )
        aws.sqs.RedriveAllowPolicy(
            f"{endpoint}-dead-letters-of",
            queue_url=dead.url,
            redrive_allow_policy=pulumi.Output.json_dumps(
                {"redrivePermission": "byQueue", "sourceQueueArns": [tasks.arn]}
            ),
            opts=opts,
        )
        key = None if self.key_arn is None else pulumi.Output.from_input(self.key_arn)
        return Queue(
            grants=[Grant.consume_queue(SqsQueues(arn=tasks.arn, key_arn=key))],
            settings={
                "LLM_PLATFORM_BROKER": self.kind,
                "LLM_PLATFORM_BROKER_REGION": self.region,
                "LLM_PLATFORM_QUEUE": tasks.url,
            },
            trigger=KedaTrigger(
                type="aws-sqs-queue",
                metadata={
                    "queueURL": tasks.url,
                    "awsRegion": self.region,
                    # A task that runs is work too: without it, workers would go while they work.
                    "scaleOnInFlight": "true",
                    "activationQueueLength": "0",
                },
                target_field="queueLength",
                authentication=AWS_AUTHENTICATION,
            ),
        )

    def _queue(
        self,
        name: str,
        physical_name: str,
        *,
        retention: int,
        opts: pulumi.ResourceOptions | None,
        lease_seconds: int = 30,
        redrive_policy: pulumi.Output[str] | None = None,
    ) -> aws.sqs.Queue:
        queue = aws.sqs.Queue(
            name,
            name=physical_name,
            message_retention_seconds=retention,
            max_message_size=limits.SQS_LARGEST_MESSAGE_BYTES,
            receive_wait_time_seconds=limits.SQS_LONGEST_POLL_SECONDS,
            # Workers say with each request how long they want a task for; this is for others.
            visibility_timeout_seconds=lease_seconds,
            redrive_policy=redrive_policy,
            kms_master_key_id=self.key_arn,
            sqs_managed_sse_enabled=True if self.key_arn is None else None,
            opts=opts,
        )
        aws.sqs.QueuePolicy(
            f"{name}-policy",
            queue_url=queue.url,
            policy=policies.document(policies.only_encrypted_transport("sqs", [queue.arn])),
            opts=opts,
        )
        return queue


def _within(seconds: int) -> int:
    """Return a time for which SQS keeps messages."""
    longest, shortest = limits.SQS_LONGEST_RETENTION_SECONDS, limits.SQS_SHORTEST_RETENTION_SECONDS
    return max(shortest, min(seconds, longest))
