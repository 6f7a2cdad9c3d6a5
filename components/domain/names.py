"""Names and their limits."""

import hashlib
import re
from typing import Annotated

from pydantic import AfterValidator

K8S_NAME_LIMIT = 63
"""A DNS label: Services, label values and therefore every name that we derive objects from."""

_K8S_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_HASH_LENGTH = 8


def _k8s_name(value: str) -> str:
    if len(value) > K8S_NAME_LIMIT:
        raise ValueError(f"{value!r} has {len(value)} characters; at most {K8S_NAME_LIMIT} fit")
    if not _K8S_NAME.fullmatch(value):
        raise ValueError(
            f"{value!r} isn't a Kubernetes name: use lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )
    return value


K8sName = Annotated[str, AfterValidator(_k8s_name)]
"""A name that Kubernetes takes for any object and as a label's value."""


def safe_name(*parts: str, limit: int = K8S_NAME_LIMIT) -> str:
    """Join ``parts`` with '-', cut to ``limit`` with a hash so that two long names stay two."""
    name = "-".join(parts)
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: limit - _HASH_LENGTH - 1].rstrip('-')}-{digest}"
