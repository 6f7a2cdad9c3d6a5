"""What workloads and teams in AWS are given: a role, and what leads to what it opens."""

import json
from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components import Grant
from components.aws.identity import TeamIdentity
from components.aws.team import AwsTeam
from components.foundation import Identity
from tests import aws_policies, aws_samples
from tests.aws_outputs import ACCOUNT, REGION, arn
from tests.aws_samples import CA, CANARY, DATABASE_SECRET
from tests.harness import Built, build
from tests.iam import granted


def bind(
    *grants: Grant, identity: Identity | None = None, container: str = "", preview: bool = False
) -> Built:
    return build(
        lambda: (identity or aws_samples.identity()).bind(
            "app",
            workload_name="app",
            namespace="apps",
            grants=grants,
            opts=pulumi.ResourceOptions(),
            container=container,
        ),
        preview=preview,
    )


def variables(built: Built) -> dict[str, Any]:
    """Return the variables of a binding: their values, or where they are read from."""

    def program() -> None:
        for entry in built.value.env:
            pulumi.export(entry["name"], entry.get("value") or entry["value_from"])

    return build(program).exports


def test_a_database_is_wired_without_a_password() -> None:
    built = bind(Grant.use_database(aws_samples.database()))
    found = variables(built)
    assert found == {
        "LLM_PLATFORM_DATABASE_URL": "postgresql://platform@postgres.example:5432/platform",
        "LLM_PLATFORM_DATABASE_SECRET_ARN": DATABASE_SECRET,
        "LLM_PLATFORM_DATABASE_CA": "/etc/llm-platform/database-ca/ca.pem",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }
    assert built.all("Secret") == []


def test_the_database_s_certificates_are_a_file_in_the_pod() -> None:
    built = bind(Grant.use_database(aws_samples.database()))
    config = built.one("ConfigMap", "app-database-ca")
    assert config.namespace == "apps"
    assert config.inputs["data"] == {"ca.pem": CA}
    (volume,), (mount,) = built.value.volumes, built.value.mounts
    assert volume == {"name": "database-ca", "config_map": {"name": "app-database-ca"}}
    assert mount["mount_path"] == "/etc/llm-platform/database-ca"
    assert mount["read_only"] is True


def test_redis_s_password_is_a_secret_beside_the_workload() -> None:
    built = bind(Grant.use_redis(aws_samples.redis()))
    secret = built.one("Secret", "app-access")
    assert secret.namespace == "apps"
    assert secret.inputs["stringData"] == {
        "LLM_PLATFORM_REDIS_URL": f"rediss://platform:{CANARY}@redis.example:6379/0"
    }
    assert {"data", "stringData"} <= set(secret.secret_outputs)
    assert any(path.startswith("stringData") for path in secret.secret_paths)
    assert built.all("Role") == []


def test_both_names_of_the_region_are_given_since_boto_reads_the_second() -> None:
    """EKS adds neither where one of them is, so that one alone would be none."""
    import botocore.configprovider

    read = botocore.configprovider.BOTOCORE_DEFAUT_SESSION_VARIABLES["region"][1]
    for grant in (
        Grant.read_bucket(aws_samples.bucket("weights", read_only=True)),
        Grant.send_queue(aws_samples.queues()),
        Grant.use_database(aws_samples.database()),
    ):
        found = variables(bind(grant))
        assert found["AWS_REGION"] == REGION
        assert found[read] == REGION


def test_a_bucket_takes_no_credentials_and_no_address() -> None:
    found = variables(bind(Grant.write_bucket(aws_samples.bucket("results"))))
    assert set(found) == {"AWS_REGION", "AWS_DEFAULT_REGION"}


def test_what_leads_to_it_must_stand_before_the_pod_starts() -> None:
    built = bind(Grant.use_database(aws_samples.database()), Grant.use_redis(aws_samples.redis()))
    kinds = {type(it).__name__ for it in built.value.needs}
    assert kinds == {"Secret", "ConfigMap", "RolePolicy", "PodIdentityAssociation"}


def test_a_change_of_what_is_wired_rolls_the_pods() -> None:
    import dataclasses

    def rolled_by(database: Any) -> str:
        built = build(
            lambda: pulumi.export(
                "hash",
                aws_samples.identity()
                .bind(
                    "app",
                    workload_name="app",
                    namespace="apps",
                    grants=[Grant.use_database(database)],
                    opts=pulumi.ResourceOptions(),
                )
                .config_hash,
            )
        )
        assert built.secret_exports == set()
        return built.exports["hash"]

    before = aws_samples.database()
    after = dataclasses.replace(before, ca=pulumi.Output.from_input("another"))
    assert rolled_by(before) == rolled_by(aws_samples.database())
    assert rolled_by(before) != rolled_by(after)


def test_every_role_has_the_boundary() -> None:
    built = bind(Grant.read_bucket(aws_samples.bucket("weights", read_only=True)))
    assert built.one("Role").inputs["permissionsBoundary"] == arn(
        "iam", "policy/boundary", regional=False
    )


def test_the_role_is_associated_with_the_workload_s_own_service_account() -> None:
    built = bind(Grant.read_bucket(aws_samples.bucket("weights", read_only=True)))
    association = built.one("PodIdentityAssociation").inputs
    assert (association["namespace"], association["serviceAccount"]) == ("apps", "app")
    assert association["clusterName"] == aws_samples.ENVIRONMENT
    assert association["roleArn"].endswith(":role/app-identity-role-1a2b3c4")


def test_what_is_for_one_container_is_kept_apart() -> None:
    built = bind(Grant.use_redis(aws_samples.redis()), container="forwarder")
    assert built.one("Secret").object_name == "app-forwarder-access"


def test_a_bucket_that_can_only_be_read_is_not_written_to() -> None:
    with pytest.raises(ValueError, match="only be read"):
        bind(Grant.write_bucket(aws_samples.bucket("weights", read_only=True)))


def test_a_permission_that_makes_no_sense_is_refused() -> None:
    from components.foundation import Permission

    with pytest.raises(ValueError, match="'send' is nothing that a Bucket"):
        bind(Grant(resource=aws_samples.bucket("results"), permission=Permission.SEND))


def test_more_than_the_grants_is_for_the_named_workload_only() -> None:
    from components.aws import rights

    identity = aws_samples.identity(more={"app": rights.publish_metrics("LlmPlatform")})
    built = bind(identity=identity)
    assert granted(json.loads(built.one("RolePolicy").inputs["policy"])) == {
        ("cloudwatch:PutMetricData", "*")
    }
    other = aws_samples.identity(more={"other": rights.publish_metrics("LlmPlatform")})
    assert bind(identity=other).all("RolePolicy") == []


def test_the_first_preview_shows_the_role_though_nothing_is_known() -> None:
    built = bind(Grant.use_database(aws_samples.database()), preview=True)
    assert [it.kind for it in built.resources if it.custom] == [
        "ConfigMap",
        "Role",
        "RolePolicy",
        "PodIdentityAssociation",
    ]


@pytest.mark.parametrize("make", [aws_policies.gateway, aws_policies.cacher])
def test_no_variable_of_a_service_is_given_twice(make: Any) -> None:
    for name, pod in build(make).pods():
        for container in pod["containers"]:
            given = [entry["name"] for entry in container["env"]]
            assert len(given) == len(set(given)), (name, sorted(given))


@pytest.mark.parametrize("make", [aws_policies.gateway, aws_policies.cacher])
def test_no_password_of_redis_is_anywhere_but_in_a_secret(make: Any) -> None:
    for resource in build(make).resources:
        if resource.kind != "Secret":
            assert CANARY not in str(resource.inputs), resource.name


def bind_for_team(*grants: Grant, container: str = "") -> Built:
    return bind(*grants, identity=TeamIdentity(), container=container)


def test_a_team_s_endpoint_makes_no_role_and_runs_with_the_team_s() -> None:
    built = bind_for_team(
        Grant.read_bucket(aws_samples.bucket("weights", read_only=True)),
        Grant.consume_queue(aws_samples.queues()),
    )
    assert built.resources == []
    assert built.value.service_account == "endpoints"
    assert variables(built) == {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}


def test_the_container_with_others_code_gets_no_credentials() -> None:
    built = bind_for_team(Grant.consume_queue(aws_samples.queues()), container="forwarder")
    assert built.value.pod_annotations == {"eks.amazonaws.com/skip-containers": "model"}


def test_a_team_s_endpoint_never_reaches_the_database() -> None:
    with pytest.raises(ValueError, match="never reach it"):
        bind_for_team(Grant.use_database(aws_samples.database()))


def team(**changes: Any) -> Built:
    return build(lambda: AwsTeam("search", aws_samples.team_args(**changes)))


def test_a_team_s_role_is_for_its_one_service_account() -> None:
    built = team()
    account = built.one("ServiceAccount", "endpoints")
    association = built.one("PodIdentityAssociation")
    assert association.inputs["serviceAccount"] == account.object_name
    assert association.inputs["namespace"] == account.namespace == "team-search"
    assert account.inputs["automountServiceAccountToken"] is False
    # A pod that started before its association would have no credentials.
    assert association.urn in account.depends_on


def test_a_team_reads_its_own_weights_and_the_shared_ones_unless_told_otherwise() -> None:
    def readable(**changes: Any) -> set[str]:
        policy = json.loads(team(**changes).one("RolePolicy").inputs["policy"])
        return {where for action, where in granted(policy) if action == "s3:GetObject"}

    weights = "arn:aws:s3:::prod-aws-weights"
    assert readable() == {f"{weights}/search/*", f"{weights}/shared/*"}
    assert readable(weights_prefixes=("",)) == {f"{weights}/*"}
    assert readable(weights_prefixes=("llama/", "gemma/")) == {
        f"{weights}/llama/*",
        f"{weights}/gemma/*",
    }


@pytest.mark.parametrize("prefixes", [("llama",), ("*/",), ("../a/",), ("a//",), ()])
def test_prefixes_that_would_cover_others_weights_are_refused(prefixes: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="weights_prefixes"):
        aws_samples.team_args(weights_prefixes=prefixes)


def test_two_teams_share_no_right_but_to_the_shared_weights() -> None:
    def rights_of(name: str) -> set[tuple[str, str]]:
        built = team(team=name, namespace=f"team-{name}")
        return granted(json.loads(built.one("RolePolicy").inputs["policy"]))

    shared = rights_of("search") & rights_of("search-infra")
    assert {where for _, where in shared if ":kms:" not in where} == {
        "arn:aws:s3:::prod-aws-weights/shared/*"
    }


def test_a_deployer_may_change_its_team_s_queues_and_nothing_else() -> None:
    (policy,) = [json.loads(it.inputs["policy"]) for it in team().all("Policy")]
    assert {where for _, where in granted(policy)} == {
        f"arn:aws:sqs:{REGION}:{ACCOUNT}:prod-aws_search_*"
    }
    assert not {action for action, _ in granted(policy)} & {
        "sqs:SendMessage",
        "sqs:ReceiveMessage",
        "sqs:AddPermission",
    }
