"""What the gateway refuses, each with its status and OpenAI's fields."""

from services.core.errors import ServiceError


class Refused(ServiceError):  # noqa: N818
    """A request that the gateway answers itself."""

    status = 500
    code: str | None = None
    param: str | None = None
    retry_after_seconds: int | None = None


class BadRequest(Refused):
    """The request isn't one that can be carried out; the message says what is wrong with it."""

    status = 400

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class TooLarge(Refused):
    """The body is over the limit."""

    status = 413
    code = "request_too_large"


class Overloaded(Refused):
    """The gateway holds as many bodies as it can."""

    status = 503
    code = "gateway_busy"
    retry_after_seconds = 1


class SlowBody(Refused):
    """The body didn't arrive in time."""

    status = 408
    code = "request_timeout"


class InvalidKey(Refused):
    """No key, or none that is valid."""

    status = 401
    code = "invalid_api_key"


class UnknownModel(Refused):
    """No endpoint of that name, or none that this key may know of."""

    status = 404
    code = "model_not_found"
    param = "model"


class NotFound(Refused):
    """No such route."""

    status = 404
    code = "unknown_url"


class MethodNotAllowed(Refused):
    """The route exists, not for this method."""

    status = 405
    code = "method_not_allowed"


class AllBusy(Refused):
    """Every worker is full."""

    status = 429
    code = "workers_busy"
    retry_after_seconds = 1


class NoWorker(Refused):
    """The endpoint has no worker that takes requests."""

    status = 503
    code = "no_worker"
    retry_after_seconds = 5


class NotReady(Refused):
    """The gateway itself hasn't loaded what it needs yet."""

    status = 503
    code = "not_ready"
    retry_after_seconds = 2


class WorkerLost(Refused):
    """The worker went away with the request; it may have been carried out in part."""

    status = 502
    code = "worker_lost"
    retry_after_seconds = 1


class TimedOut(Refused):
    """A time budget is used up."""

    status = 504
    code = "timeout"


class TooLargeAnswer(Refused):
    """The model's answer is larger than what may be held of one."""

    status = 502
    code = "answer_too_large"


class UnknownTask(Refused):
    """No task of that id, or none that this key may know of."""

    status = 404
    code = "task_not_found"


class AlreadyDone(Refused):
    """The task has a result already, and it stays."""

    status = 409
    code = "task_done"


class TasksAway(Refused):
    """What keeps tasks (the database, the broker or the bucket) doesn't answer."""

    status = 503
    code = "tasks_away"
    retry_after_seconds = 5


class MigrationFailed(ServiceError):  # noqa: N818
    """The database could not be brought to this version."""
