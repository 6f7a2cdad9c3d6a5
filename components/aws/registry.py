"""The registry: repositories for the platform's images, and copies of others' images."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

import pulumi
import pulumi_aws as aws
from pydantic import Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName, safe_name
from ..foundation import Registry
from . import limits, policies
from .account import AwsAccount
from .protection import kept

_CACHE_TAGS = "cache*"
_CACHE_DAYS, _UNTAGGED_DAYS = 30, 14


class Upstream(StrEnum):
    """A registry that ECR can copy images from, when they are first pulled."""

    K8S = "k8s"
    QUAY = "quay"
    ECR_PUBLIC = "ecr-public"
    DOCKER_HUB = "docker-hub"
    GITHUB = "github"

    @property
    def url(self) -> str:
        """Its address (ECR API, ``CreatePullThroughCacheRule``)."""
        return _URLS[self]

    @property
    def needs_login(self) -> bool:
        """Whether ECR must log in there."""
        return self in {Upstream.DOCKER_HUB, Upstream.GITHUB}


_URLS = {
    Upstream.K8S: "registry.k8s.io",
    Upstream.QUAY: "quay.io",
    Upstream.ECR_PUBLIC: "public.ecr.aws",
    Upstream.DOCKER_HUB: "registry-1.docker.io",
    Upstream.GITHUB: "ghcr.io",
}
_LONGEST_UPSTREAM = max(map(len, Upstream))


class Mirror(Args):
    """Another registry whose images are copied when they are first pulled."""

    upstream: Upstream
    """Which registry."""
    credential_arn: In[str] | None = None
    """A secret of Secrets Manager with ``username`` and ``accessToken``, its name beginning with
    ``ecr-pullthroughcache/``; Docker Hub and GitHub need one, the others take none."""

    @model_validator(mode="after")
    def _login_fits(self) -> Self:
        if self.upstream.needs_login != (self.credential_arn is not None):
            needs = "needs a login" if self.upstream.needs_login else "takes no login"
            raise ValueError(f"credential_arn: {self.upstream.value!r} {needs}")
        return self


RepositoryName = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*$")
]
"""A repository's name below the environment's prefix."""


USUAL_MIRRORS = (
    Mirror(upstream=Upstream.K8S),
    Mirror(upstream=Upstream.QUAY),
    Mirror(upstream=Upstream.ECR_PUBLIC),
)
"""Registries that need no login."""


class AwsRegistryArgs(Args):
    """Which images the registry holds, and for how long."""

    account: AwsAccount
    """Where it is."""
    prefix: K8sName | None = None
    """What the names of repositories begin with: the environment's name; the component's when left
    out."""
    repositories: tuple[RepositoryName, ...] = ("services",)
    """What is pushed to it; each repository is called ``<prefix>/<repository>``."""
    mirrors: tuple[Mirror, ...] = USUAL_MIRRORS
    """What is copied from elsewhere, so that nodes need no way to the internet."""
    key_arn: In[str]
    """The KMS key of the images."""
    images_kept: int = Field(default=100, ge=1)
    """How many images each repository keeps; the oldest go first. More than the number that could
    still be running or be gone back to."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of the role with which ECR makes repositories for copies."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: no protection, and deleted with their images."""


class AwsRegistry(pulumi.ComponentResource):
    """ECR repositories whose tags never move, and copies of other registries' images.

    Creates the repositories (scanned at each push, encrypted with our key) with their lifecycle
    policies; pull-through cache rules, and the template and role with which ECR makes repositories
    for the copies. Only tags that begin with ``cache`` may move: builds keep their layers there.
    What is the whole account's, such as the kind of scanning, is left alone.
    """

    url: pulumi.Output[str]
    """What the names of images begin with, ``<account>.dkr.ecr.<region>.amazonaws.com/<prefix>``.
    """
    registry: Registry
    mirrors: Mapping[Upstream, str]
    """What the names of copies begin with, instead of the name of their own registry."""
    mirror_prefix: str
    """What the names of the copies' repositories begin with, for the nodes' rights."""

    def __init__(
        self, name: str, args: AwsRegistryArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsRegistry", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        host = args.account.service(f"{args.account.id}.dkr.ecr")
        self._prefix = args.prefix or name
        self.url = pulumi.Output.from_input(f"{host}/{self._prefix}")
        self.registry = Registry(prefix=self.url)
        for repository in args.repositories:
            self._repository(repository)
        room = limits.ECR_MIRROR_PREFIX - _LONGEST_UPSTREAM - 1
        self.mirror_prefix = safe_name(self._prefix, limit=room)
        if args.mirrors:
            self._mirrors()
        self.mirrors = {
            mirror.upstream: f"{host}/{self.mirror_prefix}/{mirror.upstream}"
            for mirror in args.mirrors
        }
        self.register_outputs({"url": self.url})

    def _repository(self, repository: str) -> None:
        args = self._args
        name = f"{self._name}-{repository.replace('/', '-')}"
        made = aws.ecr.Repository(
            name,
            name=f"{self._prefix}/{repository}",
            image_tag_mutability="IMMUTABLE_WITH_EXCLUSION",
            image_tag_mutability_exclusion_filters=[
                {"filter": _CACHE_TAGS, "filter_type": "WILDCARD"}
            ],
            image_scanning_configuration={"scan_on_push": True},
            encryption_configurations=[{"encryption_type": "KMS", "kms_key": args.key_arn}],
            force_delete=args.ephemeral,
            opts=kept(self, ephemeral=args.ephemeral),
        )
        aws.ecr.LifecyclePolicy(
            f"{name}-lifecycle",
            repository=made.name,
            policy=lifecycle(args.images_kept),
            opts=self._child,
        )

    def _mirrors(self) -> None:
        args = self._args
        role = self._copying_role()
        template = aws.ecr.RepositoryCreationTemplate(
            f"{self._name}-mirror-template",
            prefix=self.mirror_prefix,
            description=f"Copies of other registries' images, for {self._name}",
            applied_fors=["PULL_THROUGH_CACHE"],
            custom_role_arn=role.arn,
            # Tags of others move, and ECR follows them.
            image_tag_mutability="MUTABLE",
            encryption_configurations=[{"encryption_type": "KMS", "kms_key": args.key_arn}],
            lifecycle_policy=lifecycle(args.images_kept),
            opts=self._child,
        )
        for mirror in args.mirrors:
            aws.ecr.PullThroughCacheRule(
                f"{self._name}-mirror-{mirror.upstream}",
                ecr_repository_prefix=f"{self.mirror_prefix}/{mirror.upstream}",
                upstream_registry_url=mirror.upstream.url,
                credential_arn=mirror.credential_arn,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[template]),
            )

    def _copying_role(self) -> aws.iam.Role:
        """Create the role with which ECR makes repositories that use our key.

        (ECR user guide, repository creation templates; read 2026-11.)
        """
        args = self._args
        role = aws.iam.Role(
            limits.autonamed(self._name, "mirror", limit=limits.IAM_ROLE),
            description="ECR, making repositories for copies of images",
            assume_role_policy=policies.document(
                [
                    {
                        "Sid": "Ecr",
                        "Effect": "Allow",
                        "Principal": {"Service": "ecr.amazonaws.com"},
                        "Action": ["sts:AssumeRole"],
                    }
                ]
            ),
            permissions_boundary=args.boundary_arn,
            opts=self._child,
        )
        repositories = args.account.arn("ecr", f"repository/{self.mirror_prefix}/*")
        may = [
            policies.allow(
                "MakeRepositories",
                ["ecr:CreateRepository", "ecr:ReplicateImage", "ecr:TagResource"],
                [repositories],
            ),
            policies.allow(
                "UseKey",
                ["kms:CreateGrant", "kms:RetireGrant", "kms:DescribeKey"],
                [args.key_arn],
            ),
        ]
        aws.iam.RolePolicy(
            f"{self._name}-mirror-policy",
            role=role.name,
            policy=policies.document(may),
            opts=self._child,
        )
        return role


def lifecycle(images_kept: int) -> str:
    """Return the policy of what images go when, as JSON."""
    aged = {"countType": "sinceImagePushed", "countUnit": "days"}
    rules = [
        {
            "rulePriority": 1,
            "description": "Images that nothing names",
            "selection": {"tagStatus": "untagged", **aged, "countNumber": _UNTAGGED_DAYS},
        },
        {
            "rulePriority": 2,
            "description": "Layers that builds keep",
            "selection": {
                "tagStatus": "tagged",
                "tagPatternList": [_CACHE_TAGS],
                **aged,
                "countNumber": _CACHE_DAYS,
            },
        },
        {
            "rulePriority": 3,
            "description": "The oldest of too many",
            "selection": {
                "tagStatus": "any",
                "countType": "imageCountMoreThan",
                "countNumber": images_kept,
            },
        },
    ]
    return json.dumps({"rules": [{**rule, "action": {"type": "expire"}} for rule in rules]})
