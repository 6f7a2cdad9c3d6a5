"""Where a model's weights come from."""

import re
from typing import Annotated

from pydantic import AfterValidator

from .args import Args

_SOURCE = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>.+)/")
_MOVING = {"latest", "current", "main", "master", "head", "stable", "prod", "dev"}


def _versioned(value: str) -> str:
    match = _SOURCE.fullmatch(value)
    if match is None:
        raise ValueError(
            f"{value!r} isn't a source of weights: write s3://bucket/model/version/ "
            "with the slash at the end"
        )
    parts = match["prefix"].split("/")
    moving = _MOVING.intersection(part.lower() for part in parts)
    if moving:
        raise ValueError(
            f"{value!r} may hold other weights tomorrow ({moving.pop()}/): publish them under "
            "a version, such as a date or a hash, and name that"
        )
    if len(parts) < 2 or not all(parts):
        raise ValueError(f"{value!r} has no version: write s3://bucket/model/version/")
    return value


WeightsSource = Annotated[str, AfterValidator(_versioned)]
"""A prefix of a bucket that never changes once written: ``s3://bucket/model/version/``."""


class Weights(Args):
    """One published version of a model's weights; ``Weights("s3://bucket/model/version/")``."""

    source: WeightsSource
    """A prefix of the bucket that never changes once written: ``s3://bucket/model/version/``."""

    def __init__(self, source: str) -> None:
        super().__init__(source=source)  # pyright: ignore[reportCallIssue]

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.source.removeprefix("s3://").split("/")[0]
