"""``python -m services.warmer load | publish SRC DST | bucket NAME``."""

import argparse
import sys
from pathlib import Path

import structlog

from services.core.errors import ServiceError
from services.core.logs import configure_logs
from services.core.settings import from_environment

from .address import WeightsAddress
from .load import Loader
from .publish import Publisher
from .settings import WarmerSettings
from .store import Store


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.warmer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "load", help="load LLM_PLATFORM_WEIGHTS_SOURCE into LLM_PLATFORM_WEIGHTS_DIR"
    )
    publish = commands.add_parser("publish", help="publish a folder as one version")
    publish.add_argument("source", type=Path, help="the folder")
    publish.add_argument("destination", help="s3://bucket/prefix/version/")
    bucket = commands.add_parser("bucket", help="create a bucket unless it is there")
    bucket.add_argument("name")
    return parser


def _run(
    arguments: argparse.Namespace,
    settings: WarmerSettings,
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    # Addresses are checked first: a wrong one should not wait for a server.
    match arguments.command:
        case "load":
            source = WeightsAddress.parse(settings.weights_source)
            store = _ready_store(settings, log)
            Loader(store, settings, log).load(source, settings.weights_dir)
        case "publish":
            destination = WeightsAddress.parse(arguments.destination)
            store = _ready_store(settings, log)
            Publisher(store, settings, log).publish(arguments.source, destination)
        case _:
            new = _ready_store(settings, log).create_bucket(arguments.name)
            log.info("bucket created" if new else "bucket is there", bucket=arguments.name)


def _ready_store(settings: WarmerSettings, log: structlog.typing.FilteringBoundLogger) -> Store:
    store = Store(settings.transfers, log)
    store.wait(settings.wait_seconds)
    return store


def main() -> int:
    """Run the command."""
    arguments = _parser().parse_args()
    settings = from_environment(WarmerSettings)
    log = configure_logs("warmer", settings.log_level)
    try:
        _run(arguments, settings, log)
    except (ServiceError, OSError) as error:
        log.error(f"{arguments.command} failed", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
