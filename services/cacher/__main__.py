"""``python -m services.cacher``."""

import structlog
from kubernetes_asyncio import client

from components.domain import labels
from services.core.kube import Watched, kube_client
from services.core.logs import configure_logs
from services.core.server import run
from services.core.settings import from_environment

from .app import Cacher
from .cluster import Sources
from .conditions import Conditions
from .lift import Lift
from .settings import CacherSettings


async def _serve(settings: CacherSettings, log: structlog.typing.FilteringBoundLogger) -> None:
    async with await kube_client(settings.kubeconfig) as api:
        core = client.CoreV1Api(api)
        slices = client.DiscoveryV1Api(api).list_endpoint_slice_for_all_namespaces
        apps = client.AppsV1Api(api)
        sources = Sources(
            namespaces=Watched(core.list_namespace, labels.TEAM, log),
            config_maps=Watched(
                core.list_config_map_for_all_namespaces, f"{labels.REGISTRATION}=1", log
            ),
            slices=Watched(slices, labels.ENDPOINT, log),
            deployments=Watched(apps.list_deployment_for_all_namespaces, labels.ENDPOINT, log),
        )
        lift = Lift(apps, client.CustomObjectsApi(api), log)
        await Cacher(settings, sources, Conditions(core, log), lift, log).run()


if __name__ == "__main__":
    _settings = from_environment(CacherSettings)
    run(_serve(_settings, configure_logs("cacher", _settings.log_level)))
