"""Repositories and what the registry does. Replacements: internal/service/ecr/*.go."""

import json
import os
from collections.abc import Iterator
from typing import Any

from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read

REPOSITORY = r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*"
OF_REPOSITORY = {"repositoryName": "{repository}"}


def url(name: str, default: str) -> str:
    """Return the address to push to: in the test's registry, where it named one."""
    registry = os.environ.get("STAND_IN_REGISTRY")
    return f"{registry}/{name}" if registry else default


REPOSITORY_KIND = Kind(
    "aws:ecr/repository:Repository",
    "ecr",
    Call(
        "CreateRepository",
        rename={"name": "repositoryName", "encryptionConfigurations": "encryptionConfiguration"},
    ),
    "{name}",
    update=(
        Call(
            "PutImageTagMutability",
            {"repositoryName": "{id}"},
            only=("imageTagMutability", "imageTagMutabilityExclusionFilters"),
        ),
        Call(
            "PutImageScanningConfiguration",
            {"repositoryName": "{id}"},
            only=("imageScanningConfiguration",),
        ),
    ),
    read=Read("DescribeRepositories", {"repositoryNames": ["{id}"]}, "repositories[0]"),
    delete=(
        Call(
            "DeleteRepository",
            {"repositoryName": "{id}", "force": "{outputs.forceDelete || `false`}"},
        ),
    ),
    replaces=("name", "encryptionConfigurations"),
    local=("forceDelete",),
    named=Named("name", 256, REPOSITORY, lower=True),
    gives={
        "arn": "{seen.repositoryArn}",
        "repositoryUrl": lambda c: url(c.facts["name"], c.facts["seen"]["repositoryUri"]),
    },
)


def _lifecycle_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    text = facts.get("policy")
    if not isinstance(text, str) or unknown(text):
        return
    try:
        rules = json.loads(text).get("rules", [])
    except (ValueError, AttributeError) as error:
        yield "policy", f"must be JSON: {error}"
        return
    seen: set[int] = set()
    for rule in rules:
        if missing := {"rulePriority", "selection", "action"} - set(rule):
            yield "policy", f"has a rule without {', '.join(sorted(missing))}"
        elif rule["rulePriority"] in seen:
            yield "policy", f"has two rules of priority {rule['rulePriority']}"
        seen.add(rule.get("rulePriority", 0))
    if not rules:
        yield "policy", "has no rules"


LIFECYCLE = Call(
    "PutLifecyclePolicy", OF_REPOSITORY, rename={"policy": "lifecyclePolicyText",
                                                 "repository": "repositoryName"}
)  # fmt: skip
LIFECYCLE_POLICY = Kind(
    "aws:ecr/lifecyclePolicy:LifecyclePolicy",
    "ecr",
    LIFECYCLE,
    "{repository}",
    update=(LIFECYCLE,),
    read=Read("GetLifecyclePolicy", OF_REPOSITORY, "@"),
    delete=(Call("DeleteLifecyclePolicy", OF_REPOSITORY),),
    replaces=("repository",),
    checks=_lifecycle_checks,
)

POLICY = Call(
    "SetRepositoryPolicy", OF_REPOSITORY, rename={"policy": "policyText",
                                                  "repository": "repositoryName"}
)  # fmt: skip
REPOSITORY_POLICY = Kind(
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
    "ecr",
    POLICY,
    "{repository}",
    update=(POLICY,),
    read=Read("GetRepositoryPolicy", OF_REPOSITORY, "@"),
    delete=(Call("DeleteRepositoryPolicy", OF_REPOSITORY),),
    replaces=("repository",),
)

# https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache.html, read 2026-11:
# these need no credential.
OPEN_UPSTREAMS = ("public.ecr.aws", "registry.k8s.io", "quay.io")


def _pull_through_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    upstream, credential = facts.get("upstreamRegistryUrl"), facts.get("credentialArn")
    if isinstance(credential, str) and not unknown(credential):
        if ":secret:ecr-pullthroughcache/" not in credential:
            yield (
                "credentialArn",
                "must be of a secret whose name begins with ecr-pullthroughcache/",
            )
    elif not credential and upstream not in OPEN_UPSTREAMS and not unknown(upstream):
        own = ".dkr.ecr." in str(upstream) or facts.get("customRoleArn")
        if not own:
            yield "credentialArn", f"is needed for {upstream}"


PULL_THROUGH = Kind(
    "aws:ecr/pullThroughCacheRule:PullThroughCacheRule",
    "ecr",
    Call("CreatePullThroughCacheRule", moto=False),
    "{ecrRepositoryPrefix}",
    update=(
        Call(
            "UpdatePullThroughCacheRule",
            {"ecrRepositoryPrefix": "{id}"},
            only=("credentialArn", "customRoleArn"),
            moto=False,
        ),
    ),
    delete=(Call("DeletePullThroughCacheRule", {"ecrRepositoryPrefix": "{id}"}, moto=False),),
    replaces=("ecrRepositoryPrefix", "upstreamRegistryUrl", "upstreamRepositoryPrefix"),
    named=Named("ecrRepositoryPrefix", 30, r"(?:[a-z0-9]+(?:[._/-][a-z0-9]+)*/?|ROOT)", given=True),
    gives={"registryId": "{account}"},
    checks=_pull_through_checks,
)

TEMPLATE_NAMES = {"encryptionConfigurations": "encryptionConfiguration"}
CREATION_TEMPLATE = Kind(
    "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate",
    "ecr",
    Call("CreateRepositoryCreationTemplate", rename=TEMPLATE_NAMES, moto=False),
    "{prefix}",
    update=(
        Call(
            "UpdateRepositoryCreationTemplate",
            {"prefix": "{id}"},
            rename=TEMPLATE_NAMES,
            moto=False,
        ),
    ),
    delete=(Call("DeleteRepositoryCreationTemplate", {"prefix": "{id}"}, moto=False),),
    replaces=("prefix",),
    gives={"registryId": "{account}"},
)


def _basic_scanning(context: Context) -> None:
    nothing: dict[str, Any] = {"scanType": "BASIC", "rules": []}
    context.cloud.call("ecr", "PutRegistryScanningConfiguration", nothing)


SCANNING = Call("PutRegistryScanningConfiguration", whole=True)
REGISTRY_SCANNING = Kind(
    "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration",
    "ecr",
    SCANNING,
    "{account}",
    update=(SCANNING,),
    read=Read("GetRegistryScanningConfiguration", {}, "@"),
    delete=(Act(_basic_scanning),),
    gives={"registryId": "{account}"},
)

REGISTRY_POLICY_CALL = Call("PutRegistryPolicy", rename={"policy": "policyText"})
REGISTRY_POLICY = Kind(
    "aws:ecr/registryPolicy:RegistryPolicy",
    "ecr",
    REGISTRY_POLICY_CALL,
    "{account}",
    update=(REGISTRY_POLICY_CALL,),
    read=Read("GetRegistryPolicy", {}, "@"),
    delete=(Call("DeleteRegistryPolicy"),),
    gives={"registryId": "{account}"},
)

KINDS = (
    REPOSITORY_KIND,
    LIFECYCLE_POLICY,
    REPOSITORY_POLICY,
    PULL_THROUGH,
    CREATION_TEMPLATE,
    REGISTRY_SCANNING,
    REGISTRY_POLICY,
)
