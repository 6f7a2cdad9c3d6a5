"""Roles, policies, instance profiles. Replacements: internal/service/iam/*.go."""

import json
import re
from collections.abc import Callable, Iterator

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, Tagging, added, removed

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, read 2026-11:
# characters without white space.
MANAGED_POLICY, INLINE_POLICIES, TRUST_POLICY = 6_144, 10_240, 2_048


def policy_checks(name: str, limit: int) -> Callable[[Facts], Iterator[tuple[str, str]]]:
    """Return a check that a policy is JSON and not too long."""

    def check(facts: Facts) -> Iterator[tuple[str, str]]:
        text = facts.get(name)
        if not isinstance(text, str) or unknown(text):
            return
        try:
            policy = json.loads(text)
        except ValueError as error:
            yield name, f"must be JSON: {error}"
            return
        if not isinstance(policy, dict) or not policy.get("Statement"):
            yield name, "has no Statement"
        if "Output[T]" in text or "<pulumi.output.Output" in text:
            yield name, "has the text of an Output in it: make it with pulumi.Output.json_dumps"
        length = len(re.sub(r"\s", "", text))
        if length > limit:
            yield name, f"has {length} characters without white space, at most {limit}"

    return check


def _role_policies(context: Context) -> None:
    """Make a role's inline and attached policies what it lists."""
    facts, cloud = context.facts, context.cloud
    role = {"RoleName": facts["name"]}
    for policy in removed(facts, "inlinePolicies"):
        cloud.call("iam", "DeleteRolePolicy", {**role, "PolicyName": policy["name"]})
    for policy in added(facts, "inlinePolicies"):
        if policy:
            said = {"PolicyName": policy["name"], "PolicyDocument": policy["policy"]}
            cloud.call("iam", "PutRolePolicy", {**role, **said})
    for arn in removed(facts, "managedPolicyArns"):
        cloud.call("iam", "DetachRolePolicy", {**role, "PolicyArn": arn})
    for arn in added(facts, "managedPolicyArns"):
        cloud.call("iam", "AttachRolePolicy", {**role, "PolicyArn": arn})


def _boundary(context: Context) -> None:
    role = {"RoleName": context.facts["name"]}
    if arn := context.facts.get("permissionsBoundary"):
        boundary = {**role, "PermissionsBoundary": arn}
        context.cloud.call("iam", "PutRolePermissionsBoundary", boundary)
    else:
        context.cloud.call("iam", "DeleteRolePermissionsBoundary", role)


def _boundary_is_there(context: Context) -> None:
    arn = context.facts.get("permissionsBoundary")
    if arn and not context.cloud.find("iam", "GetPolicy", "Policy", PolicyArn=arn):
        raise CloudError("NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.")


def _detach(context: Context) -> None:
    """Detach what the role itself lists; what else is attached only when that is wished."""
    facts, cloud = context.facts, context.cloud
    role = {"RoleName": facts["name"]}
    forced = facts.get("forceDetachPolicies")
    attached = cloud.call("iam", "ListAttachedRolePolicies", role)["AttachedPolicies"]
    for policy in attached:
        if forced or policy["PolicyArn"] in (facts.get("managedPolicyArns") or []):
            cloud.call("iam", "DetachRolePolicy", {**role, "PolicyArn": policy["PolicyArn"]})
    listed = [policy.get("name") for policy in facts.get("inlinePolicies") or []]
    for name in cloud.call("iam", "ListRolePolicies", role)["PolicyNames"]:
        if forced or name in listed:
            cloud.call("iam", "DeleteRolePolicy", {**role, "PolicyName": name})


ROLE = Kind(
    "aws:iam/role:Role",
    "iam",
    Call("CreateRole", rename={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"}),
    "{name}",
    then=(Act(_role_policies, ("inlinePolicies", "managedPolicyArns")),),
    update=(
        Call(
            "UpdateAssumeRolePolicy",
            {"RoleName": "{id}"},
            rename={"assumeRolePolicy": "PolicyDocument"},
            only=("assumeRolePolicy",),
        ),
        Call("UpdateRole", {"RoleName": "{id}"}, only=("description", "maxSessionDuration")),
        Act(_boundary, ("permissionsBoundary",)),
    ),
    read=Read("GetRole", {"RoleName": "{id}"}, "Role"),
    delete=(Act(_detach), Call("DeleteRole", {"RoleName": "{id}"})),
    replaces=("name", "path"),
    local=("forceDetachPolicies",),
    named=Named("name", 64, r"[\w+=,.@-]+"),
    tagging=Tagging("TagRole", "UntagRole", {"RoleName": "{id}"}),
    gives={"uniqueId": "{seen.RoleId}"},
    checks=policy_checks("assumeRolePolicy", TRUST_POLICY),
    rules=_boundary_is_there,
)


def _new_version(context: Context) -> None:
    """Put the policy as a new version, in the place of the oldest when there are five."""
    arn = {"PolicyArn": context.facts["id"]}
    versions = context.cloud.call("iam", "ListPolicyVersions", arn)["Versions"]
    older = sorted(v["VersionId"] for v in versions if not v["IsDefaultVersion"])
    if len(versions) >= 5:
        context.cloud.call("iam", "DeletePolicyVersion", {**arn, "VersionId": older[0]})
    version = {"PolicyDocument": context.facts["policy"], "SetAsDefault": True}
    context.cloud.call("iam", "CreatePolicyVersion", {**arn, **version})


def _drop_versions(context: Context) -> None:
    arn = {"PolicyArn": context.facts["id"]}
    for version in context.cloud.call("iam", "ListPolicyVersions", arn)["Versions"]:
        if not version["IsDefaultVersion"]:
            said = {**arn, "VersionId": version["VersionId"]}
            context.cloud.call("iam", "DeletePolicyVersion", said)


POLICY = Kind(
    "aws:iam/policy:Policy",
    "iam",
    Call("CreatePolicy", rename={"name": "PolicyName", "policy": "PolicyDocument"}),
    "{made.Policy.Arn}",
    update=(Act(_new_version, ("policy",)),),
    read=Read("GetPolicy", {"PolicyArn": "{id}"}, "Policy"),
    delete=(Act(_drop_versions), Call("DeletePolicy", {"PolicyArn": "{id}"})),
    replaces=("name", "path", "description"),
    local=("delayAfterPolicyCreationInMs",),
    named=Named("name", 128, r"[\w+=,.@-]+"),
    tagging=Tagging("TagPolicy", "UntagPolicy", {"PolicyArn": "{id}"}),
    gives={"arn": "{id}"},
    checks=policy_checks("policy", MANAGED_POLICY),
    keeps=("aws:iam/role:Role#permissionsBoundary",),
)

ROLE_POLICY_NAMES = {"role": "RoleName", "name": "PolicyName", "policy": "PolicyDocument"}


def _inline_size(context: Context) -> None:
    """Refuse more inline policies than a role may have."""
    facts = context.facts
    others = [
        record["inputs"]
        for record in context.store.objects(ROLE_POLICY.token)
        if record["inputs"]["role"] == facts["role"] and record["inputs"]["name"] != facts["name"]
    ]
    text = "".join([facts["policy"], *(other["policy"] for other in others)])
    if len(re.sub(r"\s", "", text)) > INLINE_POLICIES:
        message = (
            f"Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {facts['role']}"
        )
        raise CloudError("LimitExceeded", message, "PutRolePolicy")


ROLE_POLICY = Kind(
    "aws:iam/rolePolicy:RolePolicy",
    "iam",
    Call("PutRolePolicy", rename=ROLE_POLICY_NAMES),
    "{role}:{name}",
    update=(
        Call(
            "PutRolePolicy",
            {"RoleName": "{role}", "PolicyName": "{name}"},
            rename=ROLE_POLICY_NAMES,
            only=("policy",),
        ),
    ),
    read=Read("GetRolePolicy", {"RoleName": "{role}", "PolicyName": "{name}"}, "@"),
    delete=(Call("DeleteRolePolicy", {"RoleName": "{role}", "PolicyName": "{name}"}),),
    replaces=("role", "name"),
    named=Named("name", 128, r"[\w+=,.@-]+"),
    checks=policy_checks("policy", INLINE_POLICIES),
    rules=_inline_size,
)

ROLE_POLICY_ATTACHMENT = Kind(
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "iam",
    Call("AttachRolePolicy", rename={"role": "RoleName"}),
    "{role}/{policyArn}",
    read=Read(
        "ListAttachedRolePolicies",
        {"RoleName": "{role}"},
        "AttachedPolicies[?PolicyArn=='{policyArn}']|[0]",
    ),
    delete=(Call("DetachRolePolicy", {"RoleName": "{role}", "PolicyArn": "{policyArn}"}),),
    replaces=("role", "policyArn"),
)


def _profile_role(context: Context) -> None:
    profile = {"InstanceProfileName": context.facts["name"]}
    if before := context.facts["old"].get("role"):
        said = {**profile, "RoleName": before}
        context.cloud.call("iam", "RemoveRoleFromInstanceProfile", said)
    if now := context.facts.get("role"):
        context.cloud.call("iam", "AddRoleToInstanceProfile", {**profile, "RoleName": now})


def _empty_profile(context: Context) -> None:
    profile = {"InstanceProfileName": context.facts["name"]}
    if now := context.facts.get("role"):
        context.cloud.call("iam", "RemoveRoleFromInstanceProfile", {**profile, "RoleName": now})


INSTANCE_PROFILE = Kind(
    "aws:iam/instanceProfile:InstanceProfile",
    "iam",
    Call("CreateInstanceProfile", rename={"name": "InstanceProfileName"}),
    "{name}",
    then=(Act(_profile_role, ("role",)),),
    read=Read("GetInstanceProfile", {"InstanceProfileName": "{id}"}, "InstanceProfile"),
    delete=(Act(_empty_profile), Call("DeleteInstanceProfile", {"InstanceProfileName": "{id}"})),
    replaces=("name", "path"),
    named=Named("name", 128, r"[\w+=,.@-]+"),
    tagging=Tagging("TagInstanceProfile", "UntagInstanceProfile", {"InstanceProfileName": "{id}"}),
)

SERVICE_LINKED_ROLE = Kind(
    "aws:iam/serviceLinkedRole:ServiceLinkedRole",
    "iam",
    Call("CreateServiceLinkedRole"),
    "{made.Role.Arn}",
    delete=(Call("DeleteServiceLinkedRole", {"RoleName": "{outputs.name}"}),),
    replaces=("awsServiceName", "customSuffix"),
    update=(Call("UpdateRole", {"RoleName": "{outputs.name}"}, only=("description",)),),
    tagging=Tagging("TagRole", "UntagRole", {"RoleName": "{outputs.name}"}),
    gives={"arn": "{id}", "name": lambda c: c.facts["id"].rpartition("/")[2]},
)

KINDS = (
    ROLE,
    POLICY,
    ROLE_POLICY,
    ROLE_POLICY_ATTACHMENT,
    INSTANCE_PROFILE,
    SERVICE_LINKED_ROLE,
)
