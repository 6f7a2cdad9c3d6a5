"""The foundation: what has to stand before weights are published and workloads start."""

from components.contracts import FoundationContract
from components.kube.connection import require_reachable

from . import aws, local
from .aws_settings import AwsFoundationSettings
from .reading import load
from .settings import LocalFoundationSettings

SETTINGS = {"local": LocalFoundationSettings, "aws": AwsFoundationSettings}


def deploy(environment: str) -> FoundationContract:
    """Build the foundation of an environment.

    Raises:
        SettingsError: when a setting is wrong; nothing is registered then.
        pulumi.RunError: when a cluster that has to be there can't be reached; nothing is
            registered then.
    """
    settings = load(SETTINGS)
    if isinstance(settings, AwsFoundationSettings):
        return aws.foundation(environment, settings)
    reachable = require_reachable(local.named_kubeconfig(settings))
    return local.foundation(environment, settings, reachable)
