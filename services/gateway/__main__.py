"""``python -m services.gateway`` serves; with ``migrate`` it prepares the database."""

import argparse
import sys

import structlog

from components.domain import labels
from services.core.errors import ServiceError
from services.core.logs import configure_logs
from services.core.server import run
from services.core.settings import from_environment

from .migrate import migrate
from .settings import GatewaySettings, MigrationSettings


async def _serve(settings: GatewaySettings, log: structlog.typing.FilteringBoundLogger) -> None:
    # Imported here since they are slow to import, and the migration needs neither.
    from kubernetes_asyncio import client  # noqa: PLC0415

    from services.core.kube import Watched, kube_client  # noqa: PLC0415

    from .app import Gateway  # noqa: PLC0415

    async with await kube_client(settings.kubeconfig) as api:
        call = client.DiscoveryV1Api(api).list_endpoint_slice_for_all_namespaces
        await Gateway(settings, Watched(call, labels.ENDPOINT, log), log).run()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m services.gateway", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["serve", "migrate"], default="serve")
    if parser.parse_args().command == "serve":
        settings = from_environment(GatewaySettings)
        run(_serve(settings, configure_logs("gateway", settings.log_level)))
        return 0
    database = from_environment(MigrationSettings)
    log = configure_logs("gateway-migrate", database.log_level)
    try:
        run(migrate(database, log))
    except ServiceError as error:
        log.error("migration failed", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
