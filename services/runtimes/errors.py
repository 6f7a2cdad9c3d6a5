"""What keeps an engine from starting."""

from services.core.errors import ServiceError


class NoModel(ServiceError):  # noqa: N818
    """The model's directory doesn't hold exactly one model."""


class EngineFailed(ServiceError):  # noqa: N818
    """The engine didn't start."""
