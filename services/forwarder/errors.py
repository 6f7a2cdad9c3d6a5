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


class Invalid(Refused):
    """The request isn't one for this model: a hook before the model says so."""

    status = 422
    reason = b"invalid"
    code = "invalid_request"


class BodyOverLimit(Refused):
    """The request's body is too large to be read as a whole."""

    status = 413
    reason = b"too-large"
    code = "request_too_large"


class TasksOnly(Refused):
    """The worker takes tasks from its queue, and no requests."""

    status = 404
    reason = b"tasks-only"
    code = "tasks_only"
