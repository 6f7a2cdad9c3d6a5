"""A self-hosted LLM serving platform as Pulumi components.

The public names are imported when they are first used, so that the pure part (``domain``) can be
imported where Pulumi isn't installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contracts import Contract, FoundationContract, In, PlatformContract, TeamContract
    from .domain.accelerators import Accelerator
    from .domain.registration import Access, EndpointType
    from .domain.scaling import Scaling
    from .domain.weights import Weights
    from .foundation import Foundation, Grant
    from .kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
    from .kube.namespace import Namespace, NamespaceArgs
    from .kube.team import Team, TeamArgs
    from .local.cluster import load_kubeconfig
    from .local.database import LocalDatabase, LocalDatabaseArgs
    from .local.foundation import DataImages, LocalFoundation, LocalFoundationArgs, VolumeSizes
    from .local.platform import LocalPlatform
    from .local.redis import LocalRedis, LocalRedisArgs
    from .local.storage import LocalStorage, LocalStorageArgs
    from .serving.cacher import Cacher, CacherArgs
    from .serving.endpoint import ModelEndpoint, ModelEndpointArgs, Resources
    from .serving.gateway import Gateway, GatewayArgs
    from .serving.runtimes import LlamaCpp, RunnableImage

_HOMES = {
    "Accelerator": ".domain.accelerators",
    "Access": ".domain.registration",
    "Cacher": ".serving.cacher",
    "CacherArgs": ".serving.cacher",
    "Contract": ".contracts",
    "DataImages": ".local.foundation",
    "EndpointType": ".domain.registration",
    "Foundation": ".foundation",
    "FoundationContract": ".contracts",
    "Gateway": ".serving.gateway",
    "GatewayArgs": ".serving.gateway",
    "GeneratedSecret": ".kube.generated_secret",
    "GeneratedSecretArgs": ".kube.generated_secret",
    "Grant": ".foundation",
    "In": ".contracts",
    "LlamaCpp": ".serving.runtimes",
    "LocalDatabase": ".local.database",
    "LocalDatabaseArgs": ".local.database",
    "LocalFoundation": ".local.foundation",
    "LocalFoundationArgs": ".local.foundation",
    "LocalPlatform": ".local.platform",
    "LocalRedis": ".local.redis",
    "LocalRedisArgs": ".local.redis",
    "LocalStorage": ".local.storage",
    "LocalStorageArgs": ".local.storage",
    "ModelEndpoint": ".serving.endpoint",
    "ModelEndpointArgs": ".serving.endpoint",
    "Namespace": ".kube.namespace",
    "NamespaceArgs": ".kube.namespace",
    "PlatformContract": ".contracts",
    "Resources": ".serving.endpoint",
    "RunnableImage": ".serving.runtimes",
    "Scaling": ".domain.scaling",
    "Team": ".kube.team",
    "TeamArgs": ".kube.team",
    "TeamContract": ".contracts",
    "VolumeSizes": ".local.foundation",
    "Weights": ".domain.weights",
    "load_kubeconfig": ".local.cluster",
}

__all__ = [
    "Accelerator",
    "Access",
    "Cacher",
    "CacherArgs",
    "Contract",
    "DataImages",
    "EndpointType",
    "Foundation",
    "FoundationContract",
    "Gateway",
    "GatewayArgs",
    "GeneratedSecret",
    "GeneratedSecretArgs",
    "Grant",
    "In",
    "LlamaCpp",
    "LocalDatabase",
    "LocalDatabaseArgs",
    "LocalFoundation",
    "LocalFoundationArgs",
    "LocalPlatform",
    "LocalRedis",
    "LocalRedisArgs",
    "LocalStorage",
    "LocalStorageArgs",
    "ModelEndpoint",
    "ModelEndpointArgs",
    "Namespace",
    "NamespaceArgs",
    "PlatformContract",
    "Resources",
    "RunnableImage",
    "Scaling",
    "Team",
    "TeamArgs",
    "TeamContract",
    "VolumeSizes",
    "Weights",
    "load_kubeconfig",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
