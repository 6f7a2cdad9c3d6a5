"""The cluster: who gets in, what is encrypted and logged, and one that is there already."""

import json
from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components.aws.cluster import Cluster
from components.aws.cluster_addons import (
    AFTER_NODES,
    BEFORE_NODES,
    COREDNS,
    VPC_CNI,
    ClusterAddons,
)
from components.aws.cluster_args import ExistingCluster
from components.aws.update_checks import floor_above_desired, refuse_before_update, skipped_minor
from components.domain.kubernetes_versions import upgrade_problem
from tests import eks_samples
from tests.aws_outputs import ACCOUNT, THEIRS
from tests.harness import Built, build

ADMIN = f"arn:aws:iam::{ACCOUNT}:role/platform/admin"


def cluster(**changes: Any) -> Built:
    return build(lambda: Cluster("prod-aws", eks_samples.cluster_args(**changes)))


def eks(**changes: Any) -> dict[str, Any]:
    (found,) = (it for it in cluster(**changes).resources if it.type == "aws:eks/cluster:Cluster")
    return found.inputs


def test_the_api_server_is_reached_from_inside_of_the_vpc_only() -> None:
    access = eks()["vpcConfig"]
    assert access["endpointPrivateAccess"] is True
    assert access["endpointPublicAccess"] is False
    named = eks(public_access_cidrs=("203.0.113.0/24",))["vpcConfig"]
    assert named["endpointPublicAccess"] is True
    assert named["endpointPrivateAccess"] is True
    assert named["publicAccessCidrs"] == ["203.0.113.0/24"]


def test_it_is_as_a_cluster_should_be() -> None:
    inputs = eks()
    assert inputs["version"] == "1.35"
    assert inputs["name"] == "prod-aws"
    assert inputs["deletionProtection"] is True
    assert inputs["upgradePolicy"] == {"supportType": "STANDARD"}
    assert inputs["bootstrapSelfManagedAddons"] is False
    assert inputs["encryptionConfig"]["resources"] == ["secrets"]
    assert set(inputs["enabledClusterLogTypes"]) >= {"api", "audit", "authenticator"}


def test_who_makes_it_gets_in_by_an_access_entry_like_everybody_else() -> None:
    built = cluster()
    (made,) = (it for it in built.resources if it.type == "aws:eks/cluster:Cluster")
    assert made.inputs["accessConfig"] == {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": False,
    }
    entries = {it.inputs["principalArn"]: it.inputs["type"] for it in built.all("AccessEntry")}
    assert entries == {eks_samples.DEPLOYER: "STANDARD", ADMIN: "STANDARD"}
    rights = built.all("AccessPolicyAssociation")
    assert {it.inputs["principalArn"] for it in rights} == set(entries)
    assert {it.inputs["policyArn"].rpartition("/")[2] for it in rights} == {
        "AmazonEKSClusterAdminPolicy"
    }


def test_there_is_no_aws_auth_whatever_roles_there_are() -> None:
    built = cluster(admins=(ADMIN, f"arn:aws:iam::{ACCOUNT}:role/second"))
    assert not [it for it in built.resources if it.type.startswith("kubernetes:")]
    assert len(built.all("AccessEntry")) == 3


def test_another_administrator_moves_none_of_the_others() -> None:
    def entries(*admins: str) -> dict[str, str]:
        built = cluster(admins=admins)
        return {it.name: it.inputs["principalArn"] for it in built.all("AccessEntry")}

    second = f"arn:aws:iam::{ACCOUNT}:role/admin"
    one, two = entries(ADMIN), entries(second, ADMIN)
    assert len(two) == 3, "two roles of one name in different paths are two entries"
    assert one.items() <= two.items()


def test_its_logs_end_some_day_and_go_with_it() -> None:
    built = cluster(log_retention_days=30)
    logs = built.one("LogGroup")
    assert logs.inputs["name"] == "/aws/eks/prod-aws/cluster"
    assert logs.inputs["retentionInDays"] == 30
    (made,) = (it for it in built.resources if it.type == "aws:eks/cluster:Cluster")
    assert logs.urn in made.depends_on


def test_its_kubeconfig_holds_no_credentials_and_is_secret_all_the_same() -> None:
    seen: list[str] = []

    def program() -> None:
        made = Cluster("prod-aws", eks_samples.cluster_args())
        pulumi.export("kubeconfig", made.kubeconfig)

    built = build(program)
    assert built.secret_exports == {"kubeconfig"}
    config = json.loads(built.exports["kubeconfig"])
    seen.append(config["clusters"][0]["cluster"]["server"])
    user = config["users"][0]["user"]
    assert list(user) == ["exec"]
    assert user["exec"]["command"] == "aws"
    assert user["exec"]["args"] == [
        "eks", "get-token", "--cluster-name", "prod-aws", "--region", "eu-west-1",
    ]  # fmt: skip
    assert seen == ["https://ABC.gr7.eu-west-1.eks.amazonaws.com"]


def test_nodes_may_pull_images_and_no_more_than_they_need() -> None:
    attached = {
        it.inputs["policyArn"].rpartition("/")[2]
        for it in cluster().all("RolePolicyAttachment")
        if "-nodes-" in it.name
    }
    assert attached == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonSSMManagedInstanceCore",
    }


def test_an_existing_cluster_is_used_as_it_is() -> None:
    args = eks_samples.cluster_args(existing=ExistingCluster(name="theirs"))
    built = build(lambda: Cluster("prod-aws", args), answers=THEIRS)
    assert built.asked == [{"name": "theirs", "region": "eu-west-1"}]
    made = {it.type for it in built.resources if it.custom}
    assert made == {"aws:iam/role:Role", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"}
    assert built.registered_outputs[built.resources[0].urn]["security_group_id"] == "sg-theirs"
    assert built.registered_outputs[built.resources[0].urn]["version"] == "1.34"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subnet_ids": ("subnet-a",)}, "at least two zones"),
        ({"deployer_arn": None}, "deployer_arn is missing"),
        (
            {"deployer_arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/session"},
            "a session's ARN; write its role's",
        ),
        ({"admins": (ADMIN, ADMIN)}, "at most once"),
        ({"admins": (eks_samples.DEPLOYER,)}, "deployer_arn is one already"),
        ({"admins": ("admin",)}, "isn't a role's ARN"),
        ({"public_access_cidrs": ("0.0.0.0/0",)}, "nearly the whole internet"),
        ({"version": "1.35.2"}, "write major and minor"),
        ({"cluster_name": "prod aws"}, "isn't a cluster's name"),
    ],
)
def test_what_could_not_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        eks_samples.cluster_args(**given)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("1.34", "1.35", None),
        ("1.35", "1.35", None),
        ("1.31", "1.33", "no minor may be skipped; go to 1.32 first"),
        ("1.35", "1.34", "can't go back"),
        ("1.9", "1.10", None),
    ],
)
def test_a_minor_is_never_skipped(old: str, new: str, problem: str | None) -> None:
    said = upgrade_problem(old, new)
    assert said is None if problem is None else problem in str(said)
    assert skipped_minor({"version": old}, {"version": new}) == said


def test_a_refused_change_ends_the_preview() -> None:
    hooks: list[Any] = []

    def program() -> None:
        binding = refuse_before_update("version", skipped_minor)
        hooks.extend(binding.before_update or [])

    build(program)
    (hook,) = hooks
    assert hook.opts.on_dry_run is True
    change = {"urn": "urn", "id": "id", "name": "c", "type": "aws:eks/cluster:Cluster"}
    old, new = {"version": "1.31"}, {"version": "1.33"}
    hook.callback(pulumi.ResourceHookArgs(**change, old_inputs=old, new_inputs={"version": "1.32"}))
    with pytest.raises(ValueError, match="no minor may be skipped"):
        hook.callback(pulumi.ResourceHookArgs(**change, old_inputs=old, new_inputs=new))


def test_a_floor_above_what_the_state_knows_says_how_to_raise_it() -> None:
    def scaling(least: int, desired: int) -> dict[str, Any]:
        return {"scalingConfig": {"minSize": least, "desiredSize": desired, "maxSize": 9}}

    assert floor_above_desired(scaling(1, 1), scaling(2, 4)) is None
    said = str(floor_above_desired(scaling(1, 1), scaling(3, 1)))
    assert "desiredSize=3" in said
    assert "--refresh" in said


# Add-ons


def addons(**changes: Any) -> Built:
    return build(lambda: ClusterAddons("addons", eks_samples.addons_args(**changes)))


def configuration(built: Built, name: str) -> dict[str, Any]:
    (found,) = (it for it in built.all("Addon") if it.inputs["addonName"] == name)
    return json.loads(found.inputs["configurationValues"])


def test_what_nodes_need_comes_before_them_and_what_needs_nodes_after() -> None:
    assert [it.name for it in BEFORE_NODES] == ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]
    after = {it.name for it in AFTER_NODES}
    assert {"coredns", "aws-ebs-csi-driver", "eks-node-monitoring-agent"} == after


def test_network_policies_are_enforced() -> None:
    values = configuration(addons(), "vpc-cni")
    assert values["enableNetworkPolicy"] == "true"
    assert values["env"]["ENABLE_PREFIX_DELEGATION"] == "true"


def test_pods_of_add_ons_have_their_own_roles_and_nodes_have_none_of_those_rights() -> None:
    built = addons(addons=(*BEFORE_NODES, *AFTER_NODES))
    with_role = {
        it.inputs["addonName"]: it.inputs["podIdentityAssociations"][0]["serviceAccount"]
        for it in built.all("Addon")
        if it.inputs.get("podIdentityAssociations")
    }
    assert with_role == {"vpc-cni": "aws-node", "aws-ebs-csi-driver": "ebs-csi-controller-sa"}
    for role in built.all("Role"):
        (trust,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
        account = trust["Condition"]["StringEquals"]["aws:RequestTag/kubernetes-service-account"]
        assert account in with_role.values()


def test_an_add_on_waits_for_its_rights_and_for_nodes() -> None:
    def program() -> ClusterAddons:
        first = ClusterAddons("first", eks_samples.addons_args())
        return ClusterAddons(
            "second", eks_samples.addons_args(addons=AFTER_NODES, needs=first.ready)
        )

    built = build(program)
    urns = built.by_urn()
    for addon in built.all("Addon"):
        waits = {urns[it].name for it in addon.depends_on}
        if addon.name.startswith("second-"):
            assert {"first-vpc-cni", "first-kube-proxy"} <= waits, addon.name
        if "podIdentityAssociations" in addon.inputs:
            assert any(urns[it].kind == "RolePolicyAttachment" for it in addon.depends_on)


def test_an_add_on_is_named_once() -> None:
    with pytest.raises(ValidationError, match="at most once"):
        eks_samples.addons_args(addons=(VPC_CNI, COREDNS, VPC_CNI))
