"""The platform's own images: made from Debian packages, locked Python packages and our code.

Nothing here needs a container engine. Each layer is a tar file made reproducibly and kept by the
hash of what went into it; an image is an OCI layout of such layers; skopeo brings it to a registry.
"""

from .publishing import publish_all
from .recipes import RECIPES, Recipe
from .registry import Registry, publish

__all__ = ["RECIPES", "Recipe", "Registry", "publish", "publish_all"]
