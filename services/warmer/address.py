"""Where weights are: ``s3://bucket/prefix/version/``."""

import re
from dataclasses import dataclass

from .errors import BadAddress

_FORM = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.+?)/*")
_NO_VERSION = frozenset({"latest", "current", "main", "master", "stable", "head"})


@dataclass(frozen=True)
class WeightsAddress:
    """A version of weights in a bucket."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> "WeightsAddress":
        """Read an address.

        Raises:
            BadAddress: it has another form, or its last part isn't a version.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise BadAddress(f"{text!r} isn't of the form s3://bucket/prefix/version/")
        bucket, prefix = match.groups()
        parts = prefix.split("/")
        if any(part in {"", ".", ".."} for part in parts):
            raise BadAddress(f"{text!r} has an empty or relative part in its path")
        version = parts[-1].lower()
        if version in _NO_VERSION or not any(character.isdigit() for character in version):
            raise BadAddress(
                f"{text!r} ends in {parts[-1]!r}, which isn't a version: the weights of one"
                " address never change, so end it in a date or a number, such as 2026-11-03/ or v2/"
            )
        return cls(bucket, prefix)

    def key(self, path: str) -> str:
        """Return the key of one file."""
        return f"{self.prefix}/{path}"

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}/"
