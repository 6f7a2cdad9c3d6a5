"""What the forwarder refuses: each is told to the gateway, which may try another worker."""

from services.core.errors import ServiceError


class Refused(ServiceError):  # noqa: N818
    """A request that didn't reach the model."""

    status = 503
    reason = b"unready"
    code = "unready"


class Full(Refused):
    """As many requests as the worker takes are open."""

    status = 429
    reason = b"full"
    code = "worker_busy"


class Draining(Refused):
    """The worker is ending."""

    reason = b"draining"
    code = "draining"


class Unreachable(Refused):
    """The model's server takes no connection."""

    status = 503
    reason = b"unreachable"
    code = "model_unreachable"
