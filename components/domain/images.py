"""Container images, always by digest: what was tested is what runs."""

import re
from typing import Annotated

from pydantic import AfterValidator

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REPOSITORY = re.compile(
    r"([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
)


def _digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError(f"{value!r} isn't a digest: sha256: and 64 hexadecimal digits")
    return value


def _image_ref(value: str) -> str:
    repository, at, digest = value.partition("@")
    if not at:
        raise ValueError(
            f"{value!r} names an image by tag, which may be another image tomorrow: "
            f"write {value.split(':', maxsplit=1)[0] if '/' not in value else value}@sha256:…, "
            "the digest that pushing or inspecting it prints"
        )
    if not _REPOSITORY.fullmatch(repository):
        raise ValueError(f"{value!r} isn't an image reference: registry/repository@sha256:…")
    _digest(digest)
    return value


Digest = Annotated[str, AfterValidator(_digest)]
"""The content hash of an image."""

ImageRef = Annotated[str, AfterValidator(_image_ref)]
"""An image by digest: ``registry/repository@sha256:…``; a tag before the ``@`` changes nothing."""
