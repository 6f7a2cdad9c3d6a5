"""Structured logs: one JSON object a line on stdout; never a prompt, an answer or a key."""

import logging
import sys
from collections.abc import Sequence

import structlog

_SHARED: Sequence[structlog.typing.Processor] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


def configure_logs(service: str, level: str) -> structlog.typing.FilteringBoundLogger:
    """Send our logs and the libraries' to stdout as JSON, and return the service's logger.

    Args:
        service: the service's name, on every line.
        level: the least level that is written; libraries write warnings and worse only.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stdout),
        cache_logger_on_first_use=True,
    )
    _route_libraries(service, max(number, logging.WARNING))
    return structlog.get_logger(service=service)


def _route_libraries(service: str, level: int) -> None:
    def name_service(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        return {"service": service, **event}

    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_SHARED[:2], structlog.stdlib.add_logger_name, name_service],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level, force=True)
