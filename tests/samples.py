"""Values that many tests build with: one valid instance of everything that people write."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pulumi

from components import (
    Accelerator,
    Cacher,
    CacherArgs,
    Callback,
    EndpointType,
    ExistingIstio,
    Gateway,
    GatewayArgs,
    GeneratedSecret,
    GeneratedSecretArgs,
    Hooks,
    Image,
    Keda,
    KedaArgs,
    KedaManifests,
    LlamaCpp,
    LocalDatabase,
    LocalDatabaseArgs,
    LocalFoundation,
    LocalFoundationArgs,
    LocalPlatform,
    LocalRedis,
    LocalRedisArgs,
    LocalStorage,
    LocalStorageArgs,
    Logging,
    Mesh,
    MeshArgs,
    MetricsServer,
    MetricsServerArgs,
    ModelEndpoint,
    ModelEndpointArgs,
    Namespace,
    NamespaceArgs,
    Prometheus,
    PrometheusAdapter,
    PrometheusAdapterArgs,
    PrometheusArgs,
    Resources,
    RunnableImage,
    Scaling,
    Team,
    TeamArgs,
    Validation,
    Vllm,
    Weights,
)
from components.foundation import Bucket, ClusterAccess, Database, Foundation, Redis, Registry
from components.local.broker import RedisBroker
from components.local.foundation import DataImages, data_paths
from components.local.identity import LocalIdentity
from stacks import local as local_stacks
from stacks import platform as platform_stack
from stacks.settings import LocalFoundationSettings, LocalPlatformSettings
from tests.harness import Built, build

DIGEST = "sha256:" + "a" * 64
REGISTRY = "registry.example:5000"
KEDA_MANIFESTS = str(Path(__file__).parent / "keda_like.yaml")
WEIGHTS = "s3://weights/gemma-3-270m-it/2026-11-03/"
FOUNDATION_STACK = "organization/llm-platform/foundation.local"
KUBECONFIG = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": "https://10.88.0.1:6443"}}],
        "users": [{"name": "admin", "user": {"token": "canary-admin-token"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
        "current-context": "lab",
    }
)
CANARIES = {
    "database": "canary-7f3a-database",
    "redis": "canary-7f3a-redis",
    "owner": "canary-7f3a-owner",
    "reader": "canary-7f3a-reader",
    "team": "canary-7f3a-team-key",
    "scaler": "canary-7f3a-scaler",
    "team-redis": "canary-7f3a-team-redis",
}


def image(name: str, digest: str = DIGEST) -> str:
    return f"{REGISTRY}/{name}@{digest}"


def known(value: str) -> pulumi.Output[str]:
    return pulumi.Output.from_input(value)


def secret(value: str) -> pulumi.Output[str]:
    return pulumi.Output.secret(value)


def bucket(who: str, *, read_only: bool) -> Bucket:
    return Bucket(
        name=known("weights"),
        region=known("us-east-1"),
        endpoint=known("http://objectstore.llm-platform-data.svc:7071"),
        access_key=secret(f"{CANARIES[who]}-access"),
        secret_key=secret(f"{CANARIES[who]}-secret"),
        read_only=read_only,
    )


def redis(who: str = "redis", user: str = "default", **changes: Any) -> Redis:
    fields: dict[str, Any] = {
        "host": known("redis.llm-platform-data.svc"),
        "port": pulumi.Output.from_input(6379),
        "password": secret(CANARIES[who]),
        "user": user,
    }
    return Redis(**{**fields, **changes})


def foundation() -> Foundation:
    return Foundation(
        cluster=ClusterAccess(kubeconfig=secret(KUBECONFIG)),
        paths=data_paths("llm-platform-data"),
        database=Database(
            host=known("postgres.llm-platform-data.svc"),
            port=pulumi.Output.from_input(5432),
            name=known("platform"),
            user=known("platform"),
            password=secret(CANARIES["database"]),
        ),
        redis=redis(),
        redis_scaler=redis("scaler", "scaler"),
        bucket=bucket("owner", read_only=False),
        weights=bucket("reader", read_only=True),
        registry=Registry(prefix=known(REGISTRY)),
        identity=LocalIdentity(),
    )


def platform(team: str = "demo", **changes: Any) -> LocalPlatform:
    fields: dict[str, Any] = {
        "team": team,
        "namespace": f"team-{team}",
        "services_image": image("services"),
        "gateway_url": "http://gateway.llm-platform.svc",
        "weights": bucket("reader", read_only=True),
        "identity": LocalIdentity(),
        "broker": RedisBroker(redis=redis("team-redis", f"team-{team}")),
        "prometheus_url": "http://prometheus.llm-platform-monitoring.svc:9090",
        "redis_address": "redis.llm-platform-data.svc:6379",
        "cacher_url": "http://cacher.llm-platform.svc",
    }
    return LocalPlatform(**{**fields, **changes})


def llama_endpoint(**changes: Any) -> ModelEndpointArgs:
    fields: dict[str, Any] = {
        "platform": platform(),
        "runtime": LlamaCpp(model="gemma-3-270m-it", image=image("llamacpp")),
        "weights": Weights(WEIGHTS),
        "type": EndpointType.STREAMING,
        "scaling": Scaling(min_workers=2, per_worker=2),
    }
    return ModelEndpointArgs(**{**fields, **changes})


def gpu_endpoint(**changes: Any) -> ModelEndpointArgs:
    fields: dict[str, Any] = {
        "platform": platform(),
        "runtime": RunnableImage(
            image=image("summarizer"), command=("/serve",), health_path="/up", env={"MODE": "fast"}
        ),
        "accelerator": Accelerator.L40S,
    }
    return ModelEndpointArgs(**{**fields, **changes})


def scaled_endpoint(**changes: Any) -> ModelEndpointArgs:
    return llama_endpoint(
        **{
            "scaling": Scaling(min_workers=1, max_workers=4, per_worker=2),
            **changes,
        }
    )


def cold_endpoint(**changes: Any) -> ModelEndpointArgs:
    return llama_endpoint(
        **{
            "scaling": Scaling(min_workers=0, max_workers=4, per_worker=2),
            **changes,
        }
    )


def async_endpoint(**changes: Any) -> ModelEndpointArgs:
    return gpu_endpoint(
        **{
            "type": EndpointType.ASYNC,
            "scaling": Scaling(min_workers=0, max_workers=4, per_worker=2),
            "hooks": Hooks(
                pre=(Validation(schema={"type": "object", "required": ["text"]}),),
                post=(Callback(url="https://hooks.example/done"), Logging()),
            ),
            **changes,
        }
    )


def vllm_endpoint(**changes: Any) -> ModelEndpointArgs:
    fields: dict[str, Any] = {
        "runtime": Vllm(
            model="llama-3.1-70b-instruct",
            image=image("vllm"),
            version="0.19.0",
            max_model_len=8192,
            tool_call_parser="llama3_json",
        ),
        "accelerator": Accelerator.H100,
        "gpus": 4,
        "resources": Resources(
            cpu="16", memory="200Gi", disk="160Gi", shared_memory="8Gi", scratch="20Gi"
        ),
        "scaling": Scaling.cold(max_workers=6),
    }
    return llama_endpoint(**{**fields, **changes})


def data_images() -> DataImages:
    return DataImages(
        postgres=image("postgres"), redis=image("redis"), objectstore=image("objectstore")
    )


def foundation_settings(**changes: Any) -> LocalFoundationSettings:
    return LocalFoundationSettings(**{"registry": REGISTRY, "images": data_images(), **changes})


def addon_settings(**changes: Any) -> dict[str, Any]:
    """Return add-ons as ``make up`` has them: from manifests, with images of our own."""
    names = ("prometheus", "prometheus_adapter", "metrics_server")
    own = {name: {"source": "manifests", "image": image(name)} for name in names}
    keda = {"source": "manifests", "image": image("keda"), "manifests": KEDA_MANIFESTS}
    return {**own, "keda": keda, **changes}


def platform_settings(**changes: Any) -> LocalPlatformSettings:
    fields: dict[str, Any] = {
        "images": {"services": image("services"), "llamacpp": image("llamacpp")},
        "addons": addon_settings(),
        "weights": {"gemma": WEIGHTS},
    }
    return LocalPlatformSettings(**{**fields, **changes})


def keda_args(**changes: Any) -> KedaArgs:
    fields: dict[str, Any] = {
        "source": KedaManifests(file=KEDA_MANIFESTS, operator=image("keda")),
        "redis_password": secret(CANARIES["scaler"]),
        "paths": data_paths("llm-platform-data"),
    }
    return KedaArgs(**{**fields, **changes})


def prometheus_args(**changes: Any) -> PrometheusArgs:
    fields: dict[str, Any] = {
        "source": Image(image=image("prometheus")),
        "namespace": "llm-platform-monitoring",
    }
    return PrometheusArgs(**{**fields, **changes})


COMPONENTS: dict[str, Callable[[str], pulumi.ComponentResource]] = {
    "GeneratedSecret": lambda name: GeneratedSecret(
        name, GeneratedSecretArgs(namespace="apps", name="password")
    ),
    "Namespace": lambda name: Namespace(name, NamespaceArgs(name="apps", team="demo")),
    "Team": lambda name: Team(
        name,
        TeamArgs(
            name="demo",
            gpus=2,
            kubeconfig=secret(KUBECONFIG),
            platform_namespace="llm-platform",
            paths=data_paths("llm-platform-data"),
        ),
    ),
    "LocalDatabase": lambda name: LocalDatabase(
        name, LocalDatabaseArgs(namespace="data", image=image("postgres"))
    ),
    "LocalRedis": lambda name: LocalRedis(
        name, LocalRedisArgs(namespace="data", image=image("redis"))
    ),
    "LocalStorage": lambda name: LocalStorage(
        name, LocalStorageArgs(namespace="data", image=image("objectstore"))
    ),
    "LocalFoundation": lambda name: LocalFoundation(
        name,
        LocalFoundationArgs(
            kubeconfig=KUBECONFIG, registry=REGISTRY, images=data_images(), storage_class="fast"
        ),
    ),
    "Gateway": lambda name: Gateway(
        name,
        GatewayArgs(
            namespace="llm-platform",
            image=image("services"),
            foundation=foundation(),
            team_keys={"demo": secret(CANARIES["team"])},
            node_port=30080,
        ),
    ),
    "Cacher": lambda name: Cacher(
        name,
        CacherArgs(
            namespace="llm-platform",
            image=image("services"),
            foundation=foundation(),
            team_namespaces={"demo": "team-demo"},
            team_redis_passwords={"demo": secret(CANARIES["team-redis"])},
        ),
    ),
    "Keda": lambda name: Keda(name, keda_args()),
    "Prometheus": lambda name: Prometheus(name, prometheus_args(volume="5Gi")),
    "PrometheusAdapter": lambda name: PrometheusAdapter(
        name, PrometheusAdapterArgs(source=Image(image=image("prometheus-adapter")))
    ),
    "MetricsServer": lambda name: MetricsServer(
        name, MetricsServerArgs(source=Image(image=image("metrics-server")))
    ),
    "Mesh": lambda name: Mesh(
        name, MeshArgs(source=ExistingIstio(), namespaces=("llm-platform", "team-demo"))
    ),
    "ModelEndpoint": lambda name: ModelEndpoint(name, llama_endpoint()),
}
"""Every component of no cloud and of the local one, made in the way that most use it."""


@cache
def published_foundation(*, preview: bool = False) -> Built:
    """Return the foundation stack with its usual settings; built once, for it is only read."""
    return build_foundation(preview=preview)


@cache
def usual_platform(*, preview: bool = False) -> Built:
    """Return the platform stack with its usual settings; built once, for it is only read."""
    return build_platform(preview=preview)


def build_foundation(*, preview: bool = False, **settings: Any) -> Built:
    """Build the whole foundation stack."""

    def program() -> None:
        local_stacks.foundation("local", foundation_settings(**settings), KUBECONFIG).publish()

    return build(program, preview=preview, stack="foundation.local")


def build_platform(
    *,
    preview: bool = False,
    foundation_outputs: Mapping[str, Any] | None = None,
    checked: bool = False,
    **settings: Any,
) -> Built:
    """Build the whole platform stack on what the foundation stack publishes.

    ``checked`` asks first whether the cluster answers, as the program does.
    """
    published = published_foundation()
    outputs = published.exports if foundation_outputs is None else foundation_outputs

    def program() -> None:
        how = {} if checked else {"reachable": str}
        platform_stack.deploy_with("local", platform_settings(**settings), **how).publish()

    return build(
        program,
        preview=preview,
        stack="platform.local",
        foreign={FOUNDATION_STACK: outputs},
        secrets=published.secret_exports,
    )
