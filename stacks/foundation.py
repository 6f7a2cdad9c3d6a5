"""The foundation: what has to stand before weights are published and workloads start."""

import pulumi

from components.contracts import FoundationContract
from components.local.cluster import load_kubeconfig, provider, require_reachable
from components.local.foundation import LocalFoundation, LocalFoundationArgs

from .settings import LocalFoundationSettings, SettingsError, load


def deploy(environment: str) -> FoundationContract:
    """Build the foundation of an environment.

    Raises:
        SettingsError: when a setting is wrong; nothing is registered then.
        pulumi.RunError: when the cluster can't be reached; nothing is registered then.
    """
    settings = load(LocalFoundationSettings)
    try:
        kubeconfig = load_kubeconfig(settings.kubeconfig_path, settings.context or None)
    except ValueError as error:
        raise SettingsError(f"llm-platform:kubeconfig: {error}") from None
    return build(environment, settings, require_reachable(kubeconfig))


def build(
    environment: str, settings: LocalFoundationSettings, kubeconfig: str
) -> FoundationContract:
    """Build it on a cluster that is known to answer."""
    args = LocalFoundationArgs(
        kubeconfig=kubeconfig,
        registry=settings.registry,
        images=settings.images,
        volumes=settings.volumes,
        storage_class=settings.storage_class,
    )
    cluster = provider(f"{environment}-cluster", kubeconfig)
    return LocalFoundation(environment, args, pulumi.ResourceOptions(providers=[cluster])).contract
