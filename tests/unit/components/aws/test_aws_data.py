"""The database, Redis, the buckets and the keys: kept, closed and encrypted."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from components.aws.bucket import PrivateBucketArgs
from components.aws.database import AwsDatabase, DatabaseSize
from components.aws.doors import Clients
from components.aws.fsx import Lustre
from components.aws.keys import AwsKeys, AwsKeysArgs, Purpose
from components.aws.redis import AwsRedis, RedisSize
from components.aws.storage import AwsStorage
from components.domain.keys import ACTIVATION_PREFIX
from tests import aws_samples
from tests.aws_samples import DATABASE_SECRET, KEYS
from tests.harness import Built, Recorded, build


def database(**changes: Any) -> Built:
    return build(lambda: AwsDatabase("prod-aws", aws_samples.database_args(**changes)))


def redis(**changes: Any) -> Built:
    return build(lambda: AwsRedis("prod-aws", aws_samples.redis_args(**changes)))


def storage(**changes: Any) -> Built:
    return build(lambda: AwsStorage("prod-aws", aws_samples.storage_args(**changes)))


def of_bucket(built: Built, kind: str, name: str) -> Recorded:
    return next(it for it in built.all(kind) if it.name.startswith(f"prod-aws-{name}-"))


def test_the_database_cannot_be_deleted_or_replaced() -> None:
    built = database()
    cluster = built.one("Cluster")
    assert cluster.name in built.protected
    assert cluster.inputs["deletionProtection"] is True
    assert cluster.inputs["skipFinalSnapshot"] is False
    assert cluster.inputs["finalSnapshotIdentifier"] == "prod-aws-subnets-1a2b3c4-last"
    assert cluster.inputs["deleteAutomatedBackups"] is False


def test_what_stands_around_the_database_may_come_and_go() -> None:
    built = database()
    assert built.protected == {built.one("Cluster").name}


def test_an_ephemeral_environment_leaves_nothing_of_its_database() -> None:
    built = database(ephemeral=True)
    cluster = built.one("Cluster").inputs
    assert built.protected == set()
    assert (cluster["deletionProtection"], cluster["skipFinalSnapshot"]) == (False, True)
    assert cluster["deleteAutomatedBackups"] is True
    assert "finalSnapshotIdentifier" not in cluster


def test_a_minor_version_that_aws_installed_is_no_difference() -> None:
    assert "engineVersion" in database().one("Cluster").ignore_changes
    ours = database(minor_upgrades=False, engine_version="17.9").one("Cluster")
    assert "engineVersion" not in ours.ignore_changes
    assert ours.inputs["engineVersion"] == "17.9"
    assert ours.inputs["autoMinorVersionUpgrade"] is False
    instances = database(minor_upgrades=False).all("ClusterInstance")
    assert all(it.inputs["autoMinorVersionUpgrade"] is False for it in instances)


def test_no_two_clusters_leave_a_snapshot_of_the_same_name() -> None:
    def last(**changes: Any) -> str:
        return database(**changes).one("Cluster").inputs["finalSnapshotIdentifier"]

    names = {last(), last(restore_from="good"), last(restore_from="better")}
    assert len(names) == 3
    assert all(name.startswith("prod-aws-subnets-1a2b3c4-last") for name in names)
    assert all("--" not in name and name[-1] != "-" for name in names)


def test_the_database_s_password_is_in_no_input_and_no_output() -> None:
    built = database()
    assert "masterPassword" not in built.one("Cluster").inputs
    assert built.one("Cluster").inputs["manageMasterUserPassword"] is True
    assert built.value.database.password is None
    assert DATABASE_SECRET in str(built.registered_outputs)
    assert built.value.database.secret_arn is not None


def test_the_database_is_encrypted_private_and_reached_by_tls_only() -> None:
    built = database()
    cluster = built.one("Cluster").inputs
    assert cluster["storageEncrypted"] is True
    assert cluster["kmsKeyId"] == cluster["masterUserSecretKmsKeyId"] == KEYS["data"]
    assert all(it.inputs["publiclyAccessible"] is False for it in built.all("ClusterInstance"))
    (parameter,) = built.one("ClusterParameterGroup").inputs["parameters"]
    assert parameter == {"name": "rds.force_ssl", "value": "1", "applyMethod": "immediate"}
    assert cluster["dbClusterParameterGroupName"].startswith("prod-aws-parameters-17")
    assert cluster["iamDatabaseAuthenticationEnabled"] is True


def test_a_size_for_development_and_one_for_production() -> None:
    def shape(**changes: Any) -> tuple[int, float, float]:
        built = database(**changes)
        scaling = built.one("Cluster").inputs["serverlessv2ScalingConfiguration"]
        instances = len(built.all("ClusterInstance"))
        return instances, scaling["minCapacity"], scaling["maxCapacity"]

    assert shape(size="dev") == (1, 0.5, 4)
    assert shape() == (2, 1, 16)
    assert shape(size=DatabaseSize(min_acu=0, max_acu=1, instances=3)) == (3, 0, 1)


def test_the_password_s_secret_and_the_certificates_travel_with_the_database() -> None:
    built = build(lambda: _exported(AwsDatabase("prod-aws", aws_samples.database_args()).database))
    assert built.exports == {
        "url": "postgresql://platform@prod-aws.cluster-abc.eu-west-1.rds.amazonaws.com"
        ":5432/platform",
        "secret_arn": DATABASE_SECRET,
        "secret_key_arn": KEYS["data"],
        "ca": aws_samples.CA,
    }
    assert built.secret_exports == set()


def _exported(database: Any) -> None:
    import pulumi

    for field in ("url", "secret_arn", "secret_key_arn", "ca"):
        pulumi.export(field, getattr(database, field))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": {"min_acu": 0.3, "max_acu": 4, "instances": 1}}, "halves"),
        ({"size": {"min_acu": 8, "max_acu": 4, "instances": 1}}, "max_acu"),
        ({"size": "huge"}, "size"),
        ({"engine_version": "17"}, "engine_version"),
        ({"backup_days": 0}, "backup_days"),
        ({"backup_days": 36}, "backup_days"),
        ({"subnet_ids": ("subnet-a",)}, "subnet_ids"),
    ],
)
def test_a_wrong_database_is_refused_before_anything_is_made(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValidationError, match=told):
        aws_samples.database_args(**changes)


@pytest.mark.parametrize("build", [database, redis])
def test_only_the_named_clients_may_connect(build: Any) -> None:
    clients = Clients(security_groups={"cluster": "sg-1"}, cidrs={"office": "10.8.0.0/16"})
    built = build(clients=clients)
    rules = {
        it.inputs.get("referencedSecurityGroupId") or it.inputs["cidrIpv4"]: it.inputs
        for it in built.all("SecurityGroupIngressRule")
    }
    assert set(rules) == {"sg-1", "10.8.0.0/16"}
    port = {database: 5432, redis: 6379}[build]
    assert {(it["fromPort"], it["toPort"], it["ipProtocol"]) for it in rules.values()} == {
        (port, port, "tcp")
    }
    group = built.one("SecurityGroup").inputs
    assert "ingress" not in group
    assert "egress" not in group
    assert built.all("SecurityGroupEgressRule") == []


@pytest.mark.parametrize(
    ("clients", "told"),
    [
        ({}, "nobody could connect"),
        ({"cidrs": {"all": "0.0.0.0/0"}}, "whole internet"),
        ({"cidrs": {"a": "10.0.0.0/8"}, "security_groups": {"a": "sg-1"}}, "one rule's"),
    ],
)
def test_nobody_and_everybody_are_no_clients(clients: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Clients(**clients)


def test_redis_is_encrypted_on_one_shard_and_refuses_writes_when_full() -> None:
    built = redis()
    group = built.one("ReplicationGroup").inputs
    assert group["engine"] == "valkey"
    assert (group["transitEncryptionEnabled"], group["transitEncryptionMode"]) == (True, "required")
    assert (group["atRestEncryptionEnabled"], group["kmsKeyId"]) == (True, KEYS["data"])
    assert not {"numNodeGroups", "clusterMode", "authToken"} & group.keys()
    parameters = built.one("ParameterGroup").inputs
    assert parameters["family"] == "valkey8"
    assert parameters["parameters"] == [{"name": "maxmemory-policy", "value": "noeviction"}]
    assert built.value.redis.clustered is False


def test_redis_survives_a_zone_in_production_and_is_cheap_in_development() -> None:
    fields = ("nodeType", "numCacheClusters", "multiAzEnabled", "automaticFailoverEnabled")

    def shape(**changes: Any) -> tuple[Any, ...]:
        group = redis(**changes).one("ReplicationGroup").inputs
        return tuple(group[field] for field in fields)

    assert shape() == ("cache.m7g.large", 2, True, True)
    assert shape(size="dev") == ("cache.t4g.micro", 1, False, False)
    assert shape(size=RedisSize(node_type="cache.r7g.large", nodes=3))[1:] == (3, True, True)


def test_redis_is_kept_and_ends_with_a_snapshot() -> None:
    built = redis()
    group = built.one("ReplicationGroup")
    assert built.protected == {group.name}
    assert group.inputs["finalSnapshotIdentifier"] == "prod-aws-subnets-1a2b3c4-last"
    assert group.ignore_changes == ("engineVersion",)
    thrown_away = redis(ephemeral=True)
    assert thrown_away.protected == set()
    assert "finalSnapshotIdentifier" not in thrown_away.one("ReplicationGroup").inputs


def users(built: Built) -> dict[str, Recorded]:
    return {it.inputs["userName"]: it for it in built.all("User")}


def test_redis_has_two_users_and_the_default_one_is_switched_off() -> None:
    built = redis()
    found = users(built)
    assert set(found) == {"platform", "scaler", "default"}
    assert {name for name, it in found.items() if it.inputs["accessString"].startswith("on ")} == {
        "platform",
        "scaler",
    }
    assert found["default"].inputs["accessString"] == "off resetchannels -@all"
    group = built.one("UserGroup").inputs
    assert set(group["userIds"]) == {it.inputs["userId"] for it in found.values()}
    assert {it.inputs["engine"] for it in [*found.values(), built.one("UserGroup")]} == {"valkey"}


def test_the_scaler_may_ask_for_lengths_of_activation_lists_and_nothing_else() -> None:
    rights = users(redis())["scaler"].inputs["accessString"].split()
    assert rights[:4] == ["on", f"~{ACTIVATION_PREFIX}*", "resetchannels", "-@all"]
    assert set(rights[4:]) == {
        f"+{it}" for it in ["eval", "type", "llen", "ping", "hello", "select", "client|setname"]
    }


def test_the_platform_reaches_its_own_keys_and_does_nothing_to_the_server() -> None:
    rights = users(redis())["platform"].inputs["accessString"].split()
    assert [it for it in rights if it[0] in "~&"] == ["~llm-platform:*", "&llm-platform:*"]
    assert rights[-3:] == ["+@all", "-@admin", "-@dangerous"]
    assert "resetchannels" in rights


def test_redis_passwords_are_made_once_and_secret_everywhere() -> None:
    built = redis()
    version = built.one("SecretVersion")
    assert version.ignore_changes == ("secretString",)
    assert "secretString" in version.secret_paths
    passwords = json.loads(version.inputs["secretString"])
    assert set(passwords) == {"platform", "scaler"}
    found = users(built)
    for name, password in passwords.items():
        assert found[name].inputs["authenticationMode"]["passwords"] == [password]
    for user in found.values():
        assert any(path.startswith("authenticationMode") for path in user.secret_paths)
    assert found["default"].ignore_changes == ("authenticationMode",)
    shown = [it for it in built.resources if it.kind not in {"SecretVersion", "User"}]
    assert not [it.name for it in shown if passwords["platform"] in str(it.inputs)]
    assert built.one("Secret").inputs["kmsKeyId"] == KEYS["data"]


def test_redis_is_reached_over_tls_by_the_user_whose_password_it_is() -> None:
    built = redis()
    component = built.value
    assert (component.redis.user, component.redis_scaler.user) == ("platform", "scaler")
    assert component.redis.tls is True


def test_a_bucket_is_closed_to_everybody_and_keeps_old_versions() -> None:
    built = storage()
    for name in ("weights", "results", "state"):
        access = of_bucket(built, "BucketPublicAccessBlock", name).inputs
        assert {value for key, value in access.items() if key != "bucket"} == {True}
        assert len(access) == 5
        assert of_bucket(built, "BucketOwnershipControls", name).inputs["rule"] == {
            "objectOwnership": "BucketOwnerEnforced"
        }
        versions = of_bucket(built, "BucketVersioning", name).inputs
        assert versions["versioningConfiguration"] == {"status": "Enabled"}
        (rule,) = of_bucket(built, "BucketServerSideEncryptionConfiguration", name).inputs["rules"]
        assert rule == {
            "applyServerSideEncryptionByDefault": {
                "sseAlgorithm": "aws:kms",
                "kmsMasterKeyId": KEYS["storage"],
            },
            "bucketKeyEnabled": True,
        }


def test_a_bucket_refuses_requests_without_tls() -> None:
    policy = json.loads(of_bucket(storage(), "BucketPolicy", "weights").inputs["policy"])
    (statement,) = policy["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    bucket = "arn:aws:s3:::prod-aws-weights-1a2b3c4"
    assert statement["Resource"] == [bucket, f"{bucket}/*"]


def rules_of(built: Built, name: str) -> dict[str, dict[str, Any]]:
    rules = of_bucket(built, "BucketLifecycleConfiguration", name).inputs["rules"]
    assert {it["status"] for it in rules} == {"Enabled"}
    return {it["id"]: it for it in rules}


def test_results_go_after_a_month_and_weights_and_state_never() -> None:
    built = storage()
    assert rules_of(built, "results")["expiration"]["expiration"] == {"days": 30}
    for name in ("weights", "state"):
        end = rules_of(built, name)["expiration"]["expiration"]
        assert end == {"expiredObjectDeleteMarker": True}


def test_old_versions_stay_as_long_as_they_are_worth() -> None:
    built = storage()
    old = {
        name: rules_of(built, name)["old-versions"]["noncurrentVersionExpiration"]
        for name in ("weights", "results", "state")
    }
    assert old == {
        "weights": {"noncurrentDays": 30},
        "results": {"noncurrentDays": 1},
        "state": {"noncurrentDays": 90, "newerNoncurrentVersions": 10},
    }


def test_uploads_that_were_never_finished_are_not_paid_for() -> None:
    built = storage()
    for name in ("weights", "results", "state"):
        rule = rules_of(built, name)["unfinished-uploads"]
        assert rule["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}


def test_buckets_are_kept_unless_the_environment_is_ephemeral() -> None:
    built = storage()
    assert built.protected == {"prod-aws-weights", "prod-aws-results", "prod-aws-state"}
    assert {it.inputs["forceDestroy"] for it in built.all("Bucket")} == {False}
    thrown_away = storage(ephemeral=True)
    assert thrown_away.protected == set()
    assert {it.inputs["forceDestroy"] for it in thrown_away.all("Bucket")} == {True}


def test_the_weights_are_read_only_and_every_bucket_names_its_key() -> None:
    component = storage(weights_name="acme-weights").value
    assert component.weights.read_only is True
    assert component.results.read_only is False
    for bucket in (component.weights, component.results, component.state):
        assert (bucket.endpoint, bucket.access_key, bucket.secret_key) == (None, None, None)
        assert bucket.key_arn is not None
    named = storage(weights_name="acme-weights").all("Bucket")
    assert [it.inputs.get("bucket") for it in named] == ["acme-weights", None, None]


@pytest.mark.parametrize("name", ["Acme", "ab", "a" * 64, "acme_weights", "ächt-weights"])
def test_a_name_that_is_no_bucket_s_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="bucket_name"):
        PrivateBucketArgs(account=aws_samples.account(), key_arn="k", bucket_name=name)


def keys(**changes: Any) -> Built:
    args = AwsKeysArgs(account=aws_samples.account(), **changes)
    return build(lambda: AwsKeys("prod-aws", args))


def test_there_is_a_key_for_each_purpose_which_rotates_and_is_kept() -> None:
    built = keys()
    made = {it.name: it for it in built.all("Key")}
    assert set(made) == {f"prod-aws-{purpose}" for purpose in Purpose}
    assert built.protected == set(made)
    assert all(it.inputs["enableKeyRotation"] is True for it in made.values())
    assert {it.inputs["deletionWindowInDays"] for it in made.values()} == {30}
    assert {it.inputs["name"] for it in built.all("Alias")} == {f"alias/{name}" for name in made}


@pytest.mark.parametrize(
    "changes",
    [{"rotation_days": 30}, {"deletion_window_days": 3}, {"deletion_window_days": 31}],
)
def test_a_key_s_times_are_within_aws_s_limits(changes: dict[str, int]) -> None:
    (field,) = changes
    with pytest.raises(ValidationError, match=field):
        AwsKeysArgs(account=aws_samples.account(), **changes)


@pytest.mark.parametrize("number", ["12345", "abcdefghijkl", "1234567890123"])
def test_an_account_s_number_has_twelve_digits(number: str) -> None:
    with pytest.raises(ValidationError, match="12 digits"):
        aws_samples.account(id=number)


def test_the_arns_of_other_parts_of_aws_say_so() -> None:
    china = aws_samples.account(region="cn-north-1")
    assert china.arn("sqs", "q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q"
    assert china.service("sqs") == "sqs.cn-north-1.amazonaws.com.cn"
    assert aws_samples.account(region="us-gov-west-1").partition == "aws-us-gov"


def lustre(**changes: Any) -> Built:
    return build(lambda: Lustre("prod-aws", aws_samples.lustre_args(**changes)))


def test_a_file_system_shows_the_weights_and_writes_nothing_back() -> None:
    built = lustre(prefix="shared/")
    association = built.one("DataRepositoryAssociation").inputs
    assert association["dataRepositoryPath"] == "s3://prod-aws-weights/shared/"
    assert association["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}}
    system = built.one("LustreFileSystem").inputs
    assert (system["deploymentType"], system["subnetIds"]) == ("PERSISTENT_2", "subnet-gpu-a")
    assert system["kmsKeyId"] == KEYS["storage"]


def test_a_file_system_s_servers_reach_each_other_and_its_clients_reach_them() -> None:
    built = lustre()
    door = f"{built.one('SecurityGroup').name}-id"
    into = [
        (it.inputs["referencedSecurityGroupId"], it.inputs["fromPort"], it.inputs["toPort"])
        for it in built.all("SecurityGroupIngressRule")
    ]
    ports = [(988, 988), (1018, 1023)]
    assert sorted(into) == sorted((peer, *port) for peer in (door, "sg-cluster") for port in ports)
    outward = [
        it.inputs["referencedSecurityGroupId"] for it in built.all("SecurityGroupEgressRule")
    ]
    assert set(outward) == {door}


@pytest.mark.parametrize("gib", [0, 1000, 1201, 3600, 4801])
def test_a_size_that_no_file_system_has_is_refused(gib: int) -> None:
    with pytest.raises(ValidationError, match="capacity_gib"):
        aws_samples.lustre_args(capacity_gib=gib)
