"""What can go wrong with weights, said so that a person knows what to do."""

from services.core.errors import ServiceError


class WarmerError(ServiceError):
    """The base of the warmer's errors."""


class BadAddress(WarmerError):  # noqa: N818
    """An address that isn't one of weights in a bucket, or has no version."""


class BadManifest(WarmerError):  # noqa: N818
    """A manifest that is missing, can't be read, or tries to leave its directory."""


class BadContent(WarmerError):  # noqa: N818
    """Bytes that aren't those which the manifest promises."""


class NothingToPublish(WarmerError):  # noqa: N818
    """A source without files."""


class StoreAway(WarmerError):  # noqa: N818
    """The bucket's server can't be reached or refuses."""
