"""Karpenter's AWS side: its role, its nodes' role, and what tells it of instances that end."""

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.args import Args
from . import karpenter_rights, policies
from .account import AwsAccount
from .limits import SQS_NAME, autonamed
from .node_role import NodeRole, NodeRoleArgs
from .pod_role import PodRole, PodRoleArgs

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"
_EVENT_RULE = 64
"""An event rule's name and a target's id (botocore 1.44.8, ``events``, ``RuleName``, ``TargetId``).
"""
_INSTANCE_PROFILE = 128
"""An instance profile's name (botocore 1.44.8, ``iam``, ``instanceProfileNameType``)."""
_RETENTION_SECONDS = 300
"""What is older than the two minutes of a warning says nothing any more."""
EVENTS: Mapping[str, tuple[str, str]] = {
    "health": ("aws.health", "AWS Health Event"),
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state": ("aws.ec2", "EC2 Instance State-change Notification"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""What tells of instances that end (Karpenter 1.14, concepts, interruption)."""


class KarpenterAccessArgs(Args):
    """For which cluster."""

    account: AwsAccount
    """Where it is."""
    cluster_name: In[str]
    """The cluster, best as its own output, so that everything here waits for it."""
    node_policy: In[str] | None = None
    """More that its nodes may do, as JSON."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of the roles that are made."""


class KarpenterAccess(pulumi.ComponentResource):
    """What Karpenter needs of AWS in one cluster.

    Creates a role for its nodes with an instance profile and their access entry, a queue with the
    event rules that tell of instances that will end, and the controller's role, which it has by EKS
    Pod Identity. The nodes' role is its own: EKS keeps the access entries of managed node groups
    itself, and removes them with the last group.
    """

    instance_profile: pulumi.Output[str]
    """The profile that its nodes start with."""
    queue_name: pulumi.Output[str]
    """The queue that its controller reads."""
    ready: Sequence[pulumi.Resource]
    """What must stand before its controller starts."""

    def __init__(
        self, name: str, args: KarpenterAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:KarpenterAccess", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        nodes = NodeRole(
            f"{name}-nodes",
            NodeRoleArgs(
                account=args.account, policy=args.node_policy, boundary_arn=args.boundary_arn
            ),
            self._child,
        )
        entry = aws.eks.AccessEntry(
            f"{name}-nodes",
            cluster_name=args.cluster_name,
            principal_arn=nodes.role_arn,
            type="EC2_LINUX",
            opts=self._child,
        )
        profile = aws.iam.InstanceProfile(
            autonamed(name, "nodes", limit=_INSTANCE_PROFILE),
            role=nodes.role_name,
            opts=self._child,
        )
        queue, told = self._interruptions()
        controller = self._controller(nodes, profile, queue)
        self.instance_profile, self.queue_name = profile.name, queue.name
        self.ready = [entry, profile, *nodes.ready, *told, *controller.ready]
        self.register_outputs(
            {"instance_profile": self.instance_profile, "queue_name": self.queue_name}
        )

    def _controller(
        self, nodes: NodeRole, profile: aws.iam.InstanceProfile, queue: aws.sqs.Queue
    ) -> PodRole:
        args, account = self._args, self._args.account

        def policy(cluster: str) -> pulumi.Output[str]:
            return policies.document(
                [
                    *karpenter_rights.instances(account, cluster),
                    *karpenter_rights.look_ups(account, cluster),
                    *karpenter_rights.profile(account, nodes.role_arn, profile.arn),
                    *karpenter_rights.interruptions(queue.arn),
                ]
            )

        return PodRole(
            f"{self._name}-controller",
            PodRoleArgs(
                account=account,
                cluster_name=args.cluster_name,
                namespace=NAMESPACE,
                service_account=SERVICE_ACCOUNT,
                policy=pulumi.Output.from_input(args.cluster_name).apply(policy),
                boundary_arn=args.boundary_arn,
            ),
            self._child,
        )

    def _interruptions(self) -> tuple[aws.sqs.Queue, list[pulumi.Resource]]:
        queue = aws.sqs.Queue(
            autonamed(self._name, "interruptions", limit=SQS_NAME),
            message_retention_seconds=_RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            opts=self._child,
        )
        rules = [self._rule(kind, source, what) for kind, (source, what) in EVENTS.items()]
        admission = aws.sqs.QueuePolicy(
            f"{self._name}-interruptions",
            queue_url=queue.url,
            policy=policies.document(
                [
                    {
                        "Sid": "EventsOfItsRules",
                        "Effect": "Allow",
                        "Principal": {"Service": "events.amazonaws.com"},
                        "Action": ["sqs:SendMessage"],
                        "Resource": [queue.arn],
                        "Condition": {"ArnEquals": {"aws:SourceArn": [it.arn for it in rules]}},
                    },
                    *policies.only_encrypted_transport("sqs", [queue.arn]),
                ]
            ),
            opts=self._child,
        )
        targets = [
            aws.cloudwatch.EventTarget(
                autonamed(self._name, kind, limit=_EVENT_RULE),
                rule=rule.name,
                arn=queue.arn,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[admission]),
            )
            for kind, rule in zip(EVENTS, rules, strict=True)
        ]
        return queue, [admission, *targets]

    def _rule(self, kind: str, source: str, what: str) -> aws.cloudwatch.EventRule:
        return aws.cloudwatch.EventRule(
            autonamed(self._name, kind, limit=_EVENT_RULE),
            description=f"Tells Karpenter of: {what}",
            event_pattern=json.dumps({"source": [source], "detail-type": [what]}),
            opts=self._child,
        )
