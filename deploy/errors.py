"""What can go wrong on the way to a platform, each with what to do about it."""

from lab.errors import StepError


class DeployError(StepError):
    """A step of ``make up`` failed; the message says which, why, and what to do."""
