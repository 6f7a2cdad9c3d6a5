"""Where a model's weights come from."""

import re

from pydantic import field_validator

from .args import Args

_SOURCE = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>.+)/")
_MOVING = {"latest", "current", "main", "master", "head", "stable", "prod", "dev"}


class Weights(Args):
    """One published version of a model's weights; ``Weights("s3://bucket/model/version/")``."""

    source: str
    """A prefix of the bucket that never changes once written: ``s3://bucket/model/version/``."""

    def __init__(self, source: str) -> None:
        super().__init__(source=source)  # pyright: ignore[reportCallIssue]

    @field_validator("source")
    @classmethod
    def _is_versioned(cls, value: str) -> str:
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
        if len(parts) < 2 or not all(parts):  # noqa: PLR2004
            raise ValueError(f"{value!r} has no version: write s3://bucket/model/version/")
        return value

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.source.removeprefix("s3://").split("/")[0]
