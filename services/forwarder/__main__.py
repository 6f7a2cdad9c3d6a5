"""``python -m services.forwarder``."""

from services.core.logs import configure_logs
from services.core.server import run
from services.core.settings import from_environment

from .app import Forwarder
from .settings import ForwarderSettings


async def _serve(settings: ForwarderSettings) -> None:
    log = configure_logs("forwarder", settings.log_level).bind(endpoint=settings.endpoint)
    await Forwarder(settings, log).run()


if __name__ == "__main__":
    run(_serve(from_environment(ForwarderSettings)))
