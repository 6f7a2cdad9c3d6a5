"""Errors that the shared parts raise; each service adds its own in its errors module."""


class ServiceError(Exception):
    """The base of all errors of the services."""


class UpstreamError(ServiceError):
    """A request could not be carried to its end."""


class ConnectFailed(UpstreamError):  # noqa: N818  (names say what happened)
    """No connection was made, so nothing of the request has reached the upstream."""


class UpstreamBroke(UpstreamError):  # noqa: N818
    """The upstream went away, or spoke something else than HTTP, before its answer was complete."""


class Ended(UpstreamError):  # noqa: N818
    """We ended the exchange ourselves: the base of the reasons for that."""


class ClientGone(Ended):
    """The client disconnected."""


class WorkerVanished(Ended):
    """The worker was removed from the cluster while it worked on the request."""


class OutOfTime(Ended):
    """A time budget is used up; the message says which."""


class BodyTooLarge(ServiceError):  # noqa: N818
    """The request's body is over the limit."""


class NotReachable(ServiceError):  # noqa: N818
    """A service that we depend on did not come up within the limit."""


class OutboundRefused(ServiceError):  # noqa: N818
    """The address isn't one that may be asked; trying again changes nothing."""


class OutboundFailed(ServiceError):  # noqa: N818
    """The address didn't answer as it should; it may later."""
