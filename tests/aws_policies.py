"""The policy of everything that has one, by what it is for; plain JSON as AWS gets it."""

import json
from collections.abc import Callable
from typing import Any

from components import Cacher, CacherArgs, Gateway, GatewayArgs
from components.aws import policies, rights
from components.aws.boundary import Boundary
from components.aws.broker import SqsBroker
from components.aws.bucket import PrivateBucket, PrivateBucketArgs
from components.aws.keys import AwsKeys, AwsKeysArgs
from components.aws.registry import AwsRegistry
from components.aws.team import AwsTeam
from tests import aws_samples, samples
from tests.aws_samples import ENVIRONMENT, KEYS
from tests.harness import build

Policy = dict[str, Any]


def gateway() -> Any:
    metrics = rights.publish_metrics("LlmPlatform")
    identity = aws_samples.identity(more={"gateway": metrics})
    return Gateway(
        "gateway",
        GatewayArgs(
            namespace="llm-platform",
            image=samples.image("services"),
            foundation=aws_samples.foundation(identity=identity),
        ),
    )


def cacher() -> Any:
    return Cacher(
        "cacher",
        CacherArgs(
            namespace="llm-platform",
            image=samples.image("services"),
            foundation=aws_samples.foundation(),
        ),
    )


def _of(kind: str, field: str, program: Callable[[], Any], name: str = "") -> Policy:
    built = build(program)
    found = [it for it in built.all(kind) if name in it.name]
    assert len(found) == 1, [it.name for it in found]
    return json.loads(found[0].inputs[field])


def _statements(statements: policies.Statements) -> Policy:
    def program() -> None:
        import pulumi

        pulumi.export("policy", policies.document(statements))

    return json.loads(build(program).exports["policy"])


def _queue(kind: str) -> Policy:
    broker = SqsBroker(prefix=ENVIRONMENT, team="search", region="eu-west-1")
    return _of(
        "QueuePolicy",
        "policy",
        lambda: broker.queue("summarizer", team="search", namespace="n", cacher_url="u"),
        kind,
    )


def _key(purpose: str) -> Policy:
    args = AwsKeysArgs(account=aws_samples.account(), lustre=True)
    return _of("Key", "policy", lambda: AwsKeys(ENVIRONMENT, args), purpose)


ACCOUNT = aws_samples.account()
WEIGHTS = aws_samples.bucket("weights")

POLICIES: dict[str, Callable[[], Policy]] = {
    "gateway": lambda: _of("RolePolicy", "policy", gateway),
    "gateway-trust": lambda: _of("Role", "assumeRolePolicy", gateway),
    "cacher": lambda: _of("RolePolicy", "policy", cacher),
    "cacher-trust": lambda: _of("Role", "assumeRolePolicy", cacher),
    "team-endpoints": lambda: _of(
        "RolePolicy", "policy", lambda: AwsTeam("search", aws_samples.team_args())
    ),
    "team-endpoints-trust": lambda: _of(
        "Role", "assumeRolePolicy", lambda: AwsTeam("search", aws_samples.team_args())
    ),
    "team-deployer": lambda: _of(
        "Policy", "policy", lambda: AwsTeam("search", aws_samples.team_args())
    ),
    "keda-operator": lambda: _statements(
        [
            *rights.count_queues(ACCOUNT, aws_samples.queues()),
            *rights.read_metrics(),
            *rights.query_prometheus(ACCOUNT.arn("aps", "workspace/ws-1")),
        ]
    ),
    "external-secrets": lambda: _statements(
        rights.read_external_secrets(ACCOUNT, ENVIRONMENT, KEYS["data"])
    ),
    "weights-publisher": lambda: _statements(rights.publish_weights(ACCOUNT, WEIGHTS)),
    "nodes-pull-through": lambda: _statements(rights.pull_through(ACCOUNT, ENVIRONMENT)),
    "database-login": lambda: _statements(
        rights.log_in_to_database(ACCOUNT, "cluster-ABC", "gateway")
    ),
    "boundary": lambda: _of(
        "Policy", "policy", lambda: Boundary(ENVIRONMENT, aws_samples.boundary_args())
    ),
    "registry-mirror": lambda: _of(
        "RolePolicy", "policy", lambda: AwsRegistry(ENVIRONMENT, aws_samples.registry_args())
    ),
    "registry-mirror-trust": lambda: _of(
        "Role", "assumeRolePolicy", lambda: AwsRegistry(ENVIRONMENT, aws_samples.registry_args())
    ),
    "bucket": lambda: _of(
        "BucketPolicy",
        "policy",
        lambda: PrivateBucket(
            "weights", PrivateBucketArgs(account=ACCOUNT, key_arn=KEYS["storage"])
        ),
    ),
    "queue": lambda: _queue("tasks"),
    "queue-dead-letters": lambda: _queue("dead"),
    **{
        f"key-{purpose}": (lambda purpose=purpose: _key(purpose))
        for purpose in ("cluster", "data", "storage", "queues", "images")
    },
}
"""Those that end in ``-trust`` say who may become a role; ``bucket``, ``queue`` and ``key`` belong
to a resource; the others say what somebody may do."""

OF_RESOURCES = ("bucket", "queue", "key-")
"""What the names of policies begin with that belong to a resource: there ``*`` is the resource
itself, or everybody who is to be denied."""


def of_roles() -> dict[str, Callable[[], Policy]]:
    """Return the policies that say what somebody may do."""
    return {
        name: make
        for name, make in POLICIES.items()
        if not name.startswith(OF_RESOURCES) and not name.endswith("-trust")
    }
