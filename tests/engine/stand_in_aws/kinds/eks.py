"""EKS: cluster, node groups, add-ons, who may enter, which pod gets which role.

moto makes clusters and node groups; the rest is checked by boto3's models and kept in the store.
Replacements: internal/service/eks/{cluster,node_group,addon,...}.go.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..moto import Cloud, CloudError
from ..values import unknown
from .base import BY_ITS_STEPS, Act, Call, Context, Facts, Kind, Named, Read, each, given

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def cluster_of(context: Context, name: str) -> dict[str, Any]:
    """Return a cluster, or say as EKS does that there is none."""
    found = context.cloud.find("eks", "DescribeCluster", "cluster", name=name)
    if found is None:
        raise CloudError("ResourceNotFoundException", f"No cluster found for name: {name}.")
    return found


def role_of(context: Context, arn: str) -> dict[str, Any] | None:
    """Return a role of our account by its ARN; None for another account's."""
    if f":{context.cloud.account}:role/" not in arn:
        return None
    role = context.cloud.find("iam", "GetRole", "Role", RoleName=arn.rpartition("/")[2])
    if role is None:
        raise CloudError("InvalidParameterException", f"Role with arn: {arn}, could not be found")
    return role


def trusts(context: Context, arn: str, service: str) -> None:
    """Refuse a role that doesn't let a service take it."""
    role = role_of(context, arn)
    if role and service not in json.dumps(role["AssumeRolePolicyDocument"]):
        raise CloudError("InvalidParameterException", f"{arn} doesn't trust {service}")


# Clusters


def _logging(facts: Facts) -> dict[str, Any]:
    types = facts.get("enabledClusterLogTypes")
    if types is None:
        return {}
    every = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    off = [name for name in every if name not in types]
    setups = [{"types": types, "enabled": True}, {"types": off, "enabled": False}]
    return {"logging": {"clusterLogging": [setup for setup in setups if setup["types"]]}}


def _cluster_rules(context: Context) -> None:
    facts = context.facts
    trusts(context, facts["roleArn"], "eks.amazonaws.com")
    found = context.cloud.call(
        "ec2", "DescribeSubnets", {"SubnetIds": facts["vpcConfig"]["subnetIds"]}
    )
    if len({subnet["AvailabilityZone"] for subnet in found["Subnets"]}) < 2:
        raise CloudError(
            "InvalidParameterException", "Subnets specified must be in at least two different AZs"
        )
    old = facts["old"].get("version")
    if old and facts.get("version") and _minor(facts["version"]) - _minor(old) > 1:
        raise CloudError(
            "InvalidParameterException",
            f"Unsupported Kubernetes minor version update from {old} to {facts['version']}",
        )


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _cluster_forces(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    # Envelope encryption can be added, never taken away.
    before, after = old.get("encryptionConfig"), new.get("encryptionConfig")
    return ["encryptionConfig"] if before and before != after else []


def _cluster_group(context: Context) -> dict[str, Any]:
    """Make the security group that EKS makes with a cluster."""
    if context.facts["old"] or context.facts["own"].get("group"):
        return {}
    name = context.facts["name"]
    subnets = context.facts["vpcConfig"]["subnetIds"]
    found = context.cloud.call("ec2", "DescribeSubnets", {"SubnetIds": subnets})
    vpc = found["Subnets"][0]["VpcId"]
    group = context.cloud.call(
        "ec2",
        "CreateSecurityGroup",
        {
            "GroupName": f"eks-cluster-sg-{name}-{context.facts['fake'][:8]}",
            "Description": "EKS created security group applied to ENI",
            "VpcId": vpc,
        },
    )
    return {"group": group["GroupId"], "vpc": vpc}


def _drop_cluster_group(context: Context) -> None:
    if group := context.facts["own"].get("group"):
        context.cloud.call("ec2", "DeleteSecurityGroup", {"GroupId": group})


def _cluster_undeletable(context: Context) -> None:
    if context.facts["outputs"].get("deletionProtection"):
        raise CloudError(
            "InvalidRequestException", "Cluster has deletion protection enabled", "DeleteCluster"
        )


def _vpc_config(context: Context) -> dict[str, Any]:
    own = context.facts["own"]
    computed = {"clusterSecurityGroupId": own.get("group"), "vpcId": own.get("vpc")}
    return {**context.facts.get("vpcConfig", {}), **given(computed)}


def endpoint(found: Mapping[str, Any]) -> str:
    """Return where a cluster answers: the server that the test named, or moto's nowhere."""
    return os.environ.get("STAND_IN_KUBE_SERVER") or found.get("endpoint", "")


def authority(found: Mapping[str, Any]) -> str:
    """Return a cluster's certificate, in base64."""
    seen = found.get("certificateAuthority", {}).get("data", "")
    return os.environ.get("STAND_IN_KUBE_CA") or seen


def own_network(cloud: Cloud, name: str) -> dict[str, str]:
    """Return a cluster's own security group and its VPC, as EC2 has them."""
    groups = cloud.call(
        "ec2",
        "DescribeSecurityGroups",
        {"Filters": [{"Name": "group-name", "Values": [f"eks-cluster-sg-{name}-*"]}]},
    )["SecurityGroups"]
    if not groups:
        return {}
    return {"clusterSecurityGroupId": groups[0]["GroupId"], "vpcId": groups[0]["VpcId"]}


ONE_BY_ONE = ("accessConfig", "upgradePolicy", "zonalShiftConfig", "deletionProtection",
              "controlPlaneScalingConfig", "computeConfig", "storageConfig", "remoteNetworkConfig",
              "kubernetesNetworkConfig", "kubeApiServerConfig", "kubeSchedulerConfig",
              "kubeControllerManagerConfig")  # fmt: skip
CLUSTER_KIND = Kind(
    CLUSTER,
    "eks",
    Call(
        "CreateCluster",
        rename={"vpcConfig": "resourcesVpcConfig", "vpcConfig.vpcId": None},
        takes=("enabledClusterLogTypes",),
        more=_logging,
    ),
    "{name}",
    then=(Act(_cluster_group, always=True),),
    update=(
        Call("UpdateClusterVersion", {"name": "{id}"}, only=("version",), moto=False),
        Call(
            "AssociateEncryptionConfig",
            {"clusterName": "{id}"},
            only=("encryptionConfig",),
            moto=False,
        ),
        Call(
            "UpdateClusterConfig",
            {"name": "{id}"},
            takes=("enabledClusterLogTypes",),
            only=("enabledClusterLogTypes",),
            more=_logging,
        ),
        Call(
            "UpdateClusterConfig",
            {"name": "{id}"},
            rename={"vpcConfig": "resourcesVpcConfig", "vpcConfig.vpcId": None},
            only=("vpcConfig",),
        ),
        *each("UpdateClusterConfig", {"name": "{id}"}, *ONE_BY_ONE),
    ),
    read=Read("DescribeCluster", {"name": "{id}"}, "cluster"),
    delete=(
        Act(_cluster_undeletable),
        Call("DeleteCluster", {"name": "{id}"}),
        Act(_drop_cluster_group),
    ),
    replaces=("name", "roleArn", "bootstrapSelfManagedAddons", "outpostConfig",
              "accessConfig.bootstrapClusterCreatorAdminPermissions",
              "kubernetesNetworkConfig.ipFamily", "kubernetesNetworkConfig.serviceIpv4Cidr"),
    forces=_cluster_forces,
    local=("forceUpdateVersion", "defaultAddonsToRemoves"),
    named=Named("name", 100),
    gives={
        "endpoint": lambda c: endpoint(c.facts["seen"]),
        "certificateAuthority": lambda c: {"data": authority(c.facts["seen"])},
        "vpcConfig": _vpc_config,
        "identities": lambda c: [{"oidcs": [c.facts["seen"].get("identity", {}).get("oidc", {})]}],
        "status": lambda _: "ACTIVE",
    },
    rules=_cluster_rules,
)  # fmt: skip


# Node groups


def _sizes(facts: Facts) -> Iterator[tuple[str, str]]:
    sizes = facts.get("scalingConfig") or {}
    low, high, wanted = (sizes.get(name) for name in ("minSize", "maxSize", "desiredSize"))
    if any(unknown(size) or not isinstance(size, int) for size in (low, high, wanted)):
        return
    if high < 1:
        yield "scalingConfig.maxSize", f"is {high}, at least 1 is needed"
    if low < 0 or low > wanted:
        yield "scalingConfig.minSize", f"is {low}, must be between 0 and desiredSize ({wanted})"
    if wanted > high:
        yield "scalingConfig.desiredSize", f"is {wanted}, more than maxSize ({high})"


def _node_group_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _sizes(facts)
    template = facts.get("launchTemplate")
    if template and not unknown(template):
        if (template.get("id") is None) == (template.get("name") is None):
            yield "launchTemplate", "needs either id or name"
        for name in ("diskSize", "remoteAccess"):
            if facts.get(name) is not None:
                yield name, "must stand in the launch template when one is used"
    update = facts.get("updateConfig") or {}
    if not unknown(update):
        if update.get("maxUnavailable") and update.get("maxUnavailablePercentage"):
            yield "updateConfig", "takes either maxUnavailable or maxUnavailablePercentage"
        most = update.get("maxUnavailable", 1)
        if isinstance(most, int) and not 1 <= most <= 100:
            yield "updateConfig.maxUnavailable", f"is {most}, must be from 1 to 100"


def _template(context: Context) -> dict[str, Any] | None:
    """Return the launch template that a node group names, as EC2 has that version."""
    named = context.facts.get("launchTemplate")
    if not named:
        return None
    chosen = given({"LaunchTemplateId": named.get("id"), "LaunchTemplateName": named.get("name")})
    found = context.cloud.call(
        "ec2", "DescribeLaunchTemplateVersions", {**chosen, "Versions": [str(named["version"])]}
    )
    if not found["LaunchTemplateVersions"]:
        raise CloudError("InvalidRequestException", f"launch template {named} not found")
    return found["LaunchTemplateVersions"][0]["LaunchTemplateData"]


def _node_group_rules(context: Context) -> None:
    """Refuse what EKS refuses of a node group and its launch template together."""
    facts = context.facts
    cluster_of(context, facts["clusterName"])
    trusts(context, facts["nodeRoleArn"], "ec2.amazonaws.com")
    context.cloud.call("ec2", "DescribeSubnets", {"SubnetIds": facts["subnetIds"]})
    template = _template(context) or {}
    both = facts.get("instanceTypes") and template.get("InstanceType")
    block = facts.get("capacityType") == "CAPACITY_BLOCK"
    wrong = {
        "Cannot specify instance types in launch template and API request": both,
        "Launch template must not have an instance profile": template.get("IamInstanceProfile"),
        "You cannot specify an AMI Type when specifying an image id within the launch template":
            template.get("ImageId") and facts.get("amiType", "CUSTOM") != "CUSTOM",
        "You cannot specify a version or release version with an image id":
            template.get("ImageId") and (facts.get("version") or facts.get("releaseVersion")),
        "AMI Type CUSTOM needs an image id in the launch template":
            facts.get("amiType") == "CUSTOM" and not template.get("ImageId"),
        "CAPACITY_BLOCK needs the instance type and the reservation in the launch template":
            block and not (
                template.get("InstanceType") and template.get("CapacityReservationSpecification")
            ),
    }  # fmt: skip
    for reason, applies in wrong.items():
        if applies:
            raise CloudError("InvalidParameterException", reason, "CreateNodegroup")


def _scaling_group(context: Context) -> dict[str, Any]:
    """Make the scaling group that EKS makes with a node group, so that it can be tagged."""
    facts = context.facts
    if facts["old"] or facts["own"].get("group"):
        return {}
    name = f"eks-{facts['nodeGroupName']}-{facts['fake'][:8]}"
    launch = {
        "LaunchConfigurationName": name,
        "ImageId": "ami-12c6146b",
        "InstanceType": (facts.get("instanceTypes") or ["t3.medium"])[0],
    }
    context.cloud.call("autoscaling", "CreateLaunchConfiguration", launch)
    context.cloud.call(
        "autoscaling",
        "CreateAutoScalingGroup",
        {
            "AutoScalingGroupName": name,
            "LaunchConfigurationName": name,
            "MinSize": 0,
            "DesiredCapacity": 0,
            "MaxSize": facts["scalingConfig"]["maxSize"],
            "VPCZoneIdentifier": ",".join(facts["subnetIds"]),
        },
    )
    return {"group": name}


def _drop_scaling_group(context: Context) -> None:
    if name := context.facts["own"].get("group"):
        group = {"AutoScalingGroupName": name, "ForceDelete": True}
        context.cloud.call("autoscaling", "DeleteAutoScalingGroup", group)
        launch = {"LaunchConfigurationName": name}
        context.cloud.call("autoscaling", "DeleteLaunchConfiguration", launch)


def _labels(facts: Facts) -> dict[str, Any]:
    now, old = facts.get("labels") or {}, facts["old"].get("labels") or {}
    gone = [key for key in old if key not in now]
    change = given({"addOrUpdateLabels": now or None, "removeLabels": gone or None})
    return {"labels": change} if change else {}


def _taints(facts: Facts) -> dict[str, Any]:
    now, old = facts.get("taints") or [], facts["old"].get("taints") or []
    gone = [taint for taint in old if taint not in now]
    change = given({"addOrUpdateTaints": now or None, "removeTaints": gone or None})
    return {"taints": change} if change else {}


SELF = {"clusterName": "{clusterName}", "nodegroupName": "{nodeGroupName}"}
NODE_GROUP_KIND = Kind(
    NODE_GROUP,
    "eks",
    Call("CreateNodegroup", rename={"nodeRoleArn": "nodeRole", "subnetIds": "subnets"}),
    "{clusterName}:{nodeGroupName}",
    then=(Act(_scaling_group, always=True),),
    update=(
        Call(
            "UpdateNodegroupVersion",
            SELF,
            only=("version", "releaseVersion", "launchTemplate"),
            moto=False,
        ),
        # As in the real provider the whole scalingConfig is sent, with the desired size of the
        # state: one that is older than the cluster's takes nodes away.
        *each(
            "UpdateNodegroupConfig",
            SELF,
            "scalingConfig",
            "updateConfig",
            "nodeRepairConfig",
            "warmPoolConfig",
        ),
        Call("UpdateNodegroupConfig", SELF, takes=("labels",), only=("labels",), more=_labels),
        Call("UpdateNodegroupConfig", SELF, takes=("taints",), only=("taints",), more=_taints),
    ),
    read=Read("DescribeNodegroup", SELF, "nodegroup"),
    delete=(Call("DeleteNodegroup", SELF), Act(_drop_scaling_group)),
    replaces=("clusterName", "nodeGroupName", "nodeRoleArn", "subnetIds", "amiType", "capacityType",
              "diskSize", "instanceTypes", "launchTemplate.id", "launchTemplate.name",
              "remoteAccess"),
    local=("forceUpdateVersion",),
    tagging=BY_ITS_STEPS,  # moto tags clusters only
    named=Named("nodeGroupName", 63, r"[0-9A-Za-z][A-Za-z0-9\-_]*"),
    gives={
        "arn": "{seen.nodegroupArn}",
        "status": lambda _: "ACTIVE",
        "resources": lambda c: [{"autoscalingGroups": [{"name": c.facts["own"]["group"]}]}],
        "version": lambda c: c.facts.get("version") or _cluster_version(c),
        "releaseVersion": lambda c: c.facts.get("releaseVersion") or "1.35.0-20261101",
    },
    hides=("remoteAccess",),
    drifts=("scalingConfig.desiredSize", "scalingConfig.minSize", "scalingConfig.maxSize"),
    checks=_node_group_checks,
    rules=_node_group_rules,
)  # fmt: skip


def _cluster_version(context: Context) -> str:
    return cluster_of(context, context.facts["clusterName"])["version"]


# Add-ons, access, pod identities

# https://docs.aws.amazon.com/eks/latest/userguide/eks-add-ons.html, read 2026-11
ADDONS = {"vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "aws-ebs-csi-driver",
          "aws-efs-csi-driver", "aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver",
          "snapshot-controller", "eks-node-monitoring-agent", "amazon-cloudwatch-observability",
          "metrics-server", "kube-state-metrics", "prometheus-node-exporter", "cert-manager",
          "external-dns", "adot", "aws-guardduty-agent"}  # fmt: skip


def _addon_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    name = facts.get("addonName")
    if not unknown(name) and name not in ADDONS:
        yield "addonName", f"{name!r} is no add-on that EKS has"
    values = facts.get("configurationValues")
    if isinstance(values, str) and not unknown(values):
        try:
            json.loads(values)
        except ValueError as error:
            yield "configurationValues", f"must be JSON: {error}"


def _addon_rules(context: Context) -> None:
    cluster_of(context, context.facts["clusterName"])
    for association in context.facts.get("podIdentityAssociations") or []:
        trusts(context, association["roleArn"], "pods.eks.amazonaws.com")
    if role := context.facts.get("serviceAccountRoleArn"):
        role_of(context, role)


ADDON = {"clusterName": "{clusterName}", "addonName": "{addonName}"}
ADDON_KIND = Kind(
    "aws:eks/addon:Addon",
    "eks",
    Call("CreateAddon", rename={"resolveConflictsOnCreate": "resolveConflicts"}, moto=False),
    "{clusterName}:{addonName}",
    update=(
        Call(
            "UpdateAddon",
            ADDON,
            rename={"resolveConflictsOnUpdate": "resolveConflicts"},
            only=("addonVersion", "configurationValues", "podIdentityAssociations",
                  "serviceAccountRoleArn"),
            moto=False,
        ),
    ),
    delete=(Call("DeleteAddon", ADDON, moto=False),),
    replaces=("clusterName", "addonName", "namespaceConfig"),
    local=("resolveConflictsOnUpdate", "resolveConflictsOnCreate", "preserve"),
    gives={
        "arn": "arn:aws:eks:{region}:{account}:addon/{clusterName}/{addonName}/{fake}",
        "addonVersion": lambda c: c.facts.get("addonVersion") or "v1.0.0-eksbuild.1",
    },
    checks=_addon_checks,
    rules=_addon_rules,
)  # fmt: skip


def _entry_rules(context: Context) -> None:
    cluster_of(context, context.facts["clusterName"])
    role_of(context, context.facts["principalArn"])


ENTRY = {"clusterName": "{clusterName}", "principalArn": "{principalArn}"}
ACCESS_ENTRY_KIND = Kind(
    ACCESS_ENTRY,
    "eks",
    Call("CreateAccessEntry", rename={"userName": "username"}, moto=False),
    "{clusterName}:{principalArn}",
    update=(
        Call(
            "UpdateAccessEntry",
            ENTRY,
            rename={"userName": "username"},
            only=("kubernetesGroups", "userName"),
            moto=False,
        ),
    ),
    delete=(Call("DeleteAccessEntry", ENTRY, moto=False),),
    replaces=("clusterName", "principalArn", "type"),
    gives={"accessEntryArn": "arn:aws:eks:{region}:{account}:access-entry/{clusterName}/{fake}"},
    rules=_entry_rules,
)


def _policy_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    arn = facts.get("policyArn")
    if not unknown(arn) and not str(arn).startswith("arn:aws:eks::aws:cluster-access-policy/"):
        yield "policyArn", f"{arn!r} is no access policy of EKS"


def _policy_rules(context: Context) -> None:
    facts = context.facts
    cluster_of(context, facts["clusterName"])
    entry = f"{facts['clusterName']}:{facts['principalArn']}"
    if context.store.get(ACCESS_ENTRY, entry) is None:
        raise CloudError(
            "ResourceNotFoundException",
            f"The specified principalArn could not be found: {facts['principalArn']}",
            "AssociateAccessPolicy",
        )


ACCESS_POLICY_KIND = Kind(
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "eks",
    Call("AssociateAccessPolicy", moto=False),
    "{clusterName}#{principalArn}#{policyArn}",
    delete=(Call("DisassociateAccessPolicy", ENTRY | {"policyArn": "{policyArn}"}, moto=False),),
    replaces=("clusterName", "principalArn", "policyArn", "accessScope"),
    checks=_policy_checks,
    rules=_policy_rules,
)

POD_IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


def _pod_identity_rules(context: Context) -> None:
    facts = context.facts
    cluster_of(context, facts["clusterName"])
    trusts(context, facts["roleArn"], "pods.eks.amazonaws.com")
    same = ("clusterName", "namespace", "serviceAccount")
    for other in context.store.objects(POD_IDENTITY) if not facts["old"] else ():
        if all(other["inputs"].get(name) == facts[name] for name in same):
            raise CloudError(
                "ResourceInUseException",
                f"Association already exists: {other['id']}",
                "CreatePodIdentityAssociation",
            )


ASSOCIATION = {"clusterName": "{clusterName}", "associationId": "{outputs.associationId}"}
POD_IDENTITY_KIND = Kind(
    POD_IDENTITY,
    "eks",
    Call("CreatePodIdentityAssociation", moto=False),
    "a-{fake}",
    update=(
        Call(
            "UpdatePodIdentityAssociation",
            ASSOCIATION,
            only=("roleArn", "targetRoleArn", "disableSessionTags", "policy"),
            moto=False,
        ),
    ),
    delete=(Call("DeletePodIdentityAssociation", ASSOCIATION, moto=False),),
    replaces=("clusterName", "namespace", "serviceAccount"),
    gives={
        "associationId": "{id}",
        "associationArn":
            "arn:aws:eks:{region}:{account}:podidentityassociation/{clusterName}/{id}",
    },
    rules=_pod_identity_rules,
)  # fmt: skip

KINDS = (
    CLUSTER_KIND,
    NODE_GROUP_KIND,
    ADDON_KIND,
    ACCESS_ENTRY_KIND,
    ACCESS_POLICY_KIND,
    POD_IDENTITY_KIND,
)
