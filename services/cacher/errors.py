"""What can be wrong with a registration; each becomes a condition on its ConfigMap."""

from services.core.errors import ServiceError


class LeadershipLost(ServiceError):  # noqa: N818
    """Another instance is active, or the connection that proves ours is gone."""


class Unfit(ServiceError):  # noqa: N818
    """A registration that can't be used; the class's name is the condition's reason."""


class Invalid(Unfit):
    """The ConfigMap holds no registration, or one with a wrong field."""


class NameTaken(Unfit):
    """Another namespace, or another object, has the name already."""


class ForeignQueue(Unfit):
    """The registration names a queue that isn't its team's on this platform."""
