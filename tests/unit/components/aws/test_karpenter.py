"""Nodes beyond the floor: Karpenter's rights and objects, and the cluster autoscaler's."""

import json
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from components.aws import limits
from components.aws.capacity import OnDemand, Spot, group_patterns
from components.aws.cluster_autoscaler import ClusterAutoscaler, autoscaler_role, priorities_of
from components.aws.karpenter import Karpenter
from components.aws.karpenter_access import EVENTS, KarpenterAccess, KarpenterAccessArgs
from components.kube.addon import Existing
from tests import eks_samples
from tests.aws_outputs import ACCOUNT
from tests.harness import Built, Recorded, build
from tests.samples import known

CLUSTER_TAG = "aws:ResourceTag/kubernetes.io/cluster/prod-aws"


def access(cluster: Any = "prod-aws") -> Built:
    args = KarpenterAccessArgs(account=eks_samples.account(), cluster_name=cluster)
    return build(lambda: KarpenterAccess("prod-karpenter", args))


def karpenter(preview: bool = False, **changes: Any) -> Built:
    args = eks_samples.karpenter_args(**changes)
    return build(lambda: Karpenter("karpenter", args), preview=preview)


def spec(built: Built, kind: str) -> dict[str, Any]:
    return built.one(kind).inputs["spec"]


def statements(found: Recorded) -> dict[str, dict[str, Any]]:
    return {it["Sid"]: it for it in json.loads(found.inputs["policy"])["Statement"]}


def controller(built: Built) -> dict[str, dict[str, Any]]:
    return statements(built.one("RolePolicy"))


# Its rights


def test_its_nodes_have_a_role_of_their_own_with_one_access_entry() -> None:
    built = access()
    entry = built.one("AccessEntry").inputs
    assert entry["type"] == "EC2_LINUX"
    assert entry["principalArn"].endswith("role/prod-karpenter-nodes-role-1a2b3c4")
    assert built.one("InstanceProfile").inputs["role"] == "prod-karpenter-nodes-role-1a2b3c4"


def test_it_ends_and_tags_instances_of_its_own_cluster_only() -> None:
    rights = controller(access())
    for name in ("EndOwn", "StartFromOwnTemplates", "TagOwn"):
        assert rights[name]["Condition"]["StringEquals"][CLUSTER_TAG] == "owned", name
    for name in ("StartOwn", "TagOwnWhileMaking"):
        asked = rights[name]["Condition"]["StringEquals"]
        assert asked["aws:RequestTag/kubernetes.io/cluster/prod-aws"] == "owned", name


def test_it_passes_its_nodes_role_to_ec2_and_no_other() -> None:
    passing = controller(access())["PassTheNodesRole"]
    (role,) = passing["Resource"]
    assert role.endswith(":role/prod-karpenter-nodes-role-1a2b3c4")
    assert passing["Condition"]["StringEquals"]["iam:PassedToService"] == "ec2.amazonaws.com"


def test_it_makes_no_roles_or_profiles() -> None:
    actions = {action for it in controller(access()).values() for action in it["Action"]}
    assert {it for it in actions if it.startswith("iam:")} == {
        "iam:PassRole",
        "iam:GetInstanceProfile",
        "iam:ListInstanceProfiles",
    }


def test_its_policy_fits_and_names_the_cluster_though_that_is_an_output() -> None:
    built = access(known("another"))
    text = built.one("RolePolicy").inputs["policy"]
    assert "aws:ResourceTag/kubernetes.io/cluster/another" in text
    compact = json.dumps(json.loads(text), separators=(",", ":"))
    assert len(compact) <= limits.IAM_INLINE_POLICIES_CHARACTERS


def test_every_event_of_an_end_reaches_its_queue_and_nothing_else_does() -> None:
    built = access()
    patterns = [json.loads(it.inputs["eventPattern"]) for it in built.all("EventRule")]
    assert {(it["source"][0], it["detail-type"][0]) for it in patterns} == set(EVENTS.values())
    queue = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:prod-karpenter-interruptions-1a2b3c4"
    assert {it.inputs["arn"] for it in built.all("EventTarget")} == {queue}
    rules = statements(built.one("QueuePolicy"))
    sources = rules["EventsOfItsRules"]["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert len(sources) == len(EVENTS)
    assert rules["OnlyOverTls"]["Effect"] == "Deny"


# Its objects


def test_there_are_never_more_gpus_than_the_pool_may_have() -> None:
    limits_of = spec(karpenter(), "NodePool")["limits"]
    assert limits_of == {"nvidia.com/gpu": 8}


def test_a_node_goes_only_when_it_is_empty_and_one_at_a_time() -> None:
    pool = spec(karpenter(pools=(eks_samples.overflow_pool(idle_minutes=20),)), "NodePool")
    assert pool["disruption"] == {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "20m",
        "budgets": [{"nodes": "1"}],
    }
    assert pool["template"]["spec"]["terminationGracePeriod"] == "90m"
    assert pool["template"]["spec"]["expireAfter"] == "720h"


def test_what_it_may_buy_is_said_in_full() -> None:
    pool = eks_samples.overflow_pool(
        instance_types=("g6e.4xlarge", "g6e.12xlarge"),
        zones=("eu-west-1a",),
        capacity_types=("reserved", "on-demand"),
        reservation_ids=("cr-1",),
    )
    built = karpenter(pools=(pool,))
    asked = {
        it["key"]: it["values"]
        for it in spec(built, "NodePool")["template"]["spec"]["requirements"]
    }
    assert asked == {
        "node.kubernetes.io/instance-type": ["g6e.4xlarge", "g6e.12xlarge"],
        "topology.kubernetes.io/zone": ["eu-west-1a"],
        "karpenter.sh/capacity-type": ["reserved", "on-demand"],
        "kubernetes.io/arch": ["amd64"],
    }
    machines = spec(built, "EC2NodeClass")
    assert machines["capacityReservationSelectorTerms"] == [{"id": "cr-1"}]
    assert machines["subnetSelectorTerms"] == [{"id": "subnet-gpu-a"}]


def test_its_nodes_are_as_those_of_a_pool() -> None:
    machines = spec(karpenter(), "EC2NodeClass")
    assert machines["amiSelectorTerms"] == [{"alias": "al2023@v20260714"}]
    assert machines["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert machines["metadataOptions"]["httpTokens"] == "required"
    assert machines["blockDeviceMappings"][0]["ebs"]["encrypted"] is True
    assert machines["instanceStorePolicy"] == "RAID0"
    assert "maxParallelImagePulls: 8" in machines["userData"]
    template = spec(karpenter(), "NodePool")["template"]
    assert template["metadata"]["labels"]["llm-platform/accelerator"] == "l40s"
    assert template["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    ]


def test_subnets_and_security_group_are_named_by_their_ids() -> None:
    machines = spec(karpenter(), "EC2NodeClass")
    assert machines["securityGroupSelectorTerms"] == [{"id": "sg-cluster"}]
    assert all(set(it) == {"id"} for it in machines["subnetSelectorTerms"])


def test_nodes_go_before_what_they_are_and_before_who_ends_them() -> None:
    built = karpenter()
    urns = built.by_urn()

    def waits_for(name: str) -> set[str]:
        (found,) = (it for it in built.resources if it.name == name)
        return {urns[it].name for it in found.depends_on}

    assert "karpenter-overflow-l40s-machines" in waits_for("karpenter-overflow-l40s-nodes")
    assert "karpenter-release" in waits_for("karpenter-overflow-l40s-machines")
    assert "karpenter-definitions-release" in waits_for("karpenter-release")
    assert built.one("EC2NodeClass").timeouts["delete"] == "2h"


def test_in_a_cluster_that_has_karpenter_only_its_objects_are_made() -> None:
    built = karpenter(source=Existing())
    assert {it.kind for it in built.resources if it.custom} == {"EC2NodeClass", "NodePool"}


def test_objects_are_made_in_the_first_preview_whatever_is_known() -> None:
    later = {"subnets": {zone: known(it) for zone, it in eks_samples.SUBNETS.items()}}
    previewed = {it.urn for it in karpenter(preview=True, **later).resources}
    assert previewed == {it.urn for it in karpenter().resources}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"accelerator": "cpu"}, "overflow is for GPUs"),
        ({"instance_types": ("p5.48xlarge",)}, "has h100, not l40s"),
        ({"accelerator": "h200"}, "smallest of its types has 8"),
        ({"max_gpus": 0}, "max_gpus"),
        ({"capacity_types": ("reserved",)}, "reservation_ids is empty"),
        ({"reservation_ids": ("cr-1",)}, "lacks 'reserved'"),
        ({"ami_release": "latest"}, "ami_release"),
    ],
)
def test_an_overflow_that_could_not_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        eks_samples.overflow_pool(**{"max_gpus": 4, **given})


def test_pools_of_one_name_and_zones_without_a_subnet_are_refused() -> None:
    pool = eks_samples.overflow_pool()
    with pytest.raises(ValidationError, match="at most once"):
        eks_samples.karpenter_args(pools=(pool, pool))
    stranger = eks_samples.overflow_pool(zones=("eu-west-1c",))
    with pytest.raises(ValidationError, match="there is no subnet"):
        eks_samples.karpenter_args(pools=(stranger,))


# The cluster autoscaler


def values(**changes: Any) -> dict[str, Any]:
    args = eks_samples.autoscaler_args(**changes)
    return build(lambda: ClusterAutoscaler("autoscaler", args)).one("Release").inputs["values"]


def test_the_autoscaler_is_of_the_cluster_s_version_and_finds_its_groups() -> None:
    found = values(version="1.34")
    assert found["image"]["tag"] == "v1.34.0"
    assert found["autoDiscovery"] == {"clusterName": "prod-aws"}
    assert found["awsRegion"] == "eu-west-1"


def test_balloons_make_nodes_and_what_is_below_them_does_not() -> None:
    assert values()["extraArgs"]["expendable-pods-priority-cutoff"] == -10


def test_it_tries_the_sources_of_a_pool_in_order_and_knows_the_rest() -> None:
    pools = [group_patterns(name, (OnDemand(), Spot())) for name in ("one", "two")]
    priorities = yaml.safe_load(values(priorities=priorities_of(pools))["expanderPriorities"])
    assert priorities == {
        100: [pools[0][0], pools[1][0]],
        90: [pools[0][1], pools[1][1]],
        1: [".*"],
    }


def test_without_a_way_out_it_asks_nobody_what_types_have() -> None:
    assert values(isolated=True)["extraArgs"]["aws-use-static-instance-list"] is True


def test_it_changes_the_size_of_its_own_cluster_s_groups_only() -> None:
    built = build(
        lambda: autoscaler_role("autoscaler", eks_samples.account(), known("prod-aws"), opts=None)
    )
    rights = statements(built.one("RolePolicy"))
    assert rights["ChangeOwn"]["Condition"]["StringEquals"] == {
        "aws:ResourceTag/k8s.io/cluster-autoscaler/prod-aws": "owned",
        "aws:ResourceTag/k8s.io/cluster-autoscaler/enabled": "true",
    }
    assert set(rights["ChangeOwn"]["Action"]) == {
        "autoscaling:SetDesiredCapacity",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
    }


def test_in_a_cluster_that_has_an_autoscaler_nothing_is_made() -> None:
    args = eks_samples.autoscaler_args(source=Existing())
    built = build(lambda: ClusterAutoscaler("autoscaler", args))
    assert [it.custom for it in built.resources] == [False]
