"""An environment in AWS."""

import json
from collections.abc import Sequence
from typing import cast

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from components import Gateway, PlatformContract, Team, TeamContract
from components.aws.account import AwsAccount
from components.aws.contracts import AwsFoundationContract, AwsTeamContract
from components.aws.foundation import AwsFoundation
from components.aws.foundation_args import AwsFoundationArgs, AwsWishes
from components.aws.load_balancer import GatewayDoor, GatewayDoorArgs
from components.aws.platform import AwsPlatform
from components.aws.team import AwsTeam, AwsTeamArgs
from components.aws.values import foundation_from
from components.foundation import Foundation
from components.serving.gateway import PORT

from . import aws_price
from .aws_operators import install
from .aws_settings import AwsFoundationSettings, AwsPlatformSettings, Tags
from .cloud import Cloud
from .reading import SettingsError
from .settings import TeamSettings


def provider(name: str, account: AwsAccount, tags: Tags, environment: str) -> aws.Provider:
    """Return the provider for one account and region, which refuses every other account."""
    return aws.Provider(
        name,
        region=account.region,
        allowed_account_ids=[account.id],
        default_tags={"tags": tags.of(environment)},
    )


def foundation(environment: str, settings: AwsFoundationSettings) -> AwsFoundationContract:
    """Build the foundation.

    Raises:
        SettingsError: when the certificates' file can't be read; nothing is registered then.
    """
    try:
        ca = settings.database_ca_file.read_text()
    except OSError as error:
        raise SettingsError(
            f"llm-platform:database_ca_file: can't read {settings.database_ca_file} "
            f"({error.strerror}); `make up` fetches it"
        ) from None
    aws_price.show(environment, settings)
    wishes = {field: getattr(settings, field) for field in AwsWishes.model_fields}
    args = AwsFoundationArgs(**wishes, database_ca=ca)
    account = provider(f"{environment}-aws", settings.account, settings.tags, environment)
    name = settings.name or environment
    return AwsFoundation(name, args, pulumi.ResourceOptions(providers=[account])).contract


class AwsCloud(Cloud):
    """An environment whose data services are AWS's own."""

    team_contract = AwsTeamContract
    pod_identity = "aws"

    def __init__(self, environment: str, settings: AwsPlatformSettings) -> None:
        self._settings = settings
        self._environment = environment
        self._name = settings.name or environment

    def read(self, stack: str) -> Foundation:
        """Return what the foundation's stack tells of."""
        self._provider = provider(
            f"{self._environment}-aws",
            self._settings.account,
            self._settings.tags,
            self._environment,
        )
        self._contract = AwsFoundationContract.read(stack)
        self._foundation = foundation_from(
            self._contract,
            account=self._settings.account,
            name=self._name,
            cloudwatch=self._settings.cloudwatch,
        )
        return self._foundation

    def providers(self) -> Sequence[pulumi.ProviderResource]:
        """Return the access to the account."""
        return [self._provider]

    def view(
        self,
        shared: PlatformContract,
        own: TeamContract,
        *,
        team: str,
        provider: k8s.Provider | None,
    ) -> AwsPlatform:
        """Return the platform as a team sees it."""
        return AwsPlatform.of(
            shared,
            cast("AwsTeamContract", own),
            team=team,
            environment=self._name,
            metrics=self._settings.metrics,
            provider=provider,
            cloud_provider=getattr(self, "_provider", None),
        )

    def operators(self, name: str, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """Create what fills target groups, sizes node groups, and offers and measures GPUs."""
        return install(
            name,
            self._settings,
            self._contract,
            environment=self._name,
            subnets=self._gpu_subnets(),
            opts=opts,
        )

    def _gpu_subnets(self) -> dict[str, pulumi.Output[str]]:
        by_zone = self._contract.gpu_subnets.apply(json.loads)
        return {zone: by_zone[zone] for zone in self._settings.zones}

    def admit(
        self, name: str, settings: TeamSettings, team: Team, opts: pulumi.ResourceOptions
    ) -> AwsTeamContract:
        """Create the team's role, and return what is handed to it."""
        made = AwsTeam(
            f"{name}-aws",
            AwsTeamArgs(
                account=self._settings.account,
                prefix=self._name,
                team=settings.name,
                namespace=team.namespace,
                cluster_name=self._contract.cluster_name,
                weights=self._foundation.weights,
                queues_key_arn=self._contract.queues_key_arn,
                boundary_arn=self._contract.boundary_arn,
            ),
            opts,
        )
        return AwsTeamContract(
            namespace=team.namespace,
            gateway_key=team.gateway_key,
            kubeconfig=team.kubeconfig,
            weights_bucket=self._contract.weights_bucket,
            region=pulumi.Output.from_input(self._settings.account.region),
            queues_key_arn=self._contract.queues_key_arn,
            deployer_policy_arn=made.deployer_policy_arn,
        )

    def address(
        self, name: str, gateway: Gateway, opts: pulumi.ResourceOptions
    ) -> pulumi.Output[str]:
        """Create the load balancer in front of the gateway, and return its address there."""
        wished = self._settings.gateway
        subnets = self._contract.public_subnets if wished.public else self._contract.private_subnets
        door = GatewayDoor(
            name,
            GatewayDoorArgs(
                vpc_id=self._contract.vpc_id,
                subnet_ids=subnets.apply(_some),
                node_security_group=self._contract.cluster_security_group,
                namespace=gateway.namespace,
                service=gateway.service,
                pod_port=PORT,
                domain=wished.domain,
                zone_id=wished.zone_id,
                certificate_arn=wished.certificate_arn,
                public=wished.public,
                clients=wished.clients,
                request_timeout_seconds=wished.request_timeout_seconds,
                deletion_protection=not self._settings.ephemeral,
            ),
            opts,
        )
        return door.address


def _some(ids: str) -> list[str]:
    """Return the subnets of the load balancer.

    Raises:
        pulumi.RunError: when there are none.
    """
    if not ids:
        raise pulumi.RunError(
            "llm-platform:gateway.public is true, but the foundation's network has no public "
            "subnets: give it some (network.nat other than none, or existing.public_subnets), or "
            "leave gateway.public out"
        )
    return ids.split(",")
