"""From layers to an image in a registry: an OCI layout on disk, then skopeo."""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.commands import run
from lab.oci import architecture

from ..errors import DeployError
from .layers import EPOCH, Layer
from .recipes import Recipe, Workshop

# The images are our own: whose signature they'd need isn't for this machine's policy to say.
_SKOPEO = ("skopeo", "--insecure-policy")
_OCI = "application/vnd.oci.image"
_CREATED = "2026-01-01T00:00:00Z"
assert EPOCH == 1_767_225_600  # noqa: S101 - the same moment as _CREATED


@dataclass(frozen=True)
class Registry:
    """Where images go.

    Args:
        prefix: Host, port and path before an image's name, such as ``10.88.0.1:5000/llm-platform``.
        insecure: Whether it speaks plain HTTP, as the lab's does on the machine's own network.
        login: The file with the login for it; skopeo's own when left out.
    """

    prefix: str
    insecure: bool = False
    login: Path | None = None


def publish(name: str, recipe: Recipe, workshop: Workshop, registry: Registry) -> str:
    """Make the image and bring it to ``registry``; what is there already isn't sent again.

    Returns:
        The image by digest, as settings and manifests name it.

    Raises:
        DeployError: a layer can't be made, or the registry refuses; the message says what to do.
    """
    if shutil.which("skopeo") is None:
        raise DeployError(
            f"publishing {name}", "skopeo isn't on PATH; on Debian: apt-get install skopeo"
        )
    layers = [part.layer(workshop) for part in recipe.parts]
    repository = f"{registry.prefix}/{name}"
    with workshop.store.scratch() as scratch:
        layout = Path(scratch)
        digest = _write_layout(layout, recipe, layers)
        target = f"docker://{repository}:{digest.removeprefix('sha256:')[:16]}"
        if _held(target, registry) != digest:
            _push(layout, target, registry)
    return f"{repository}@{digest}"


def _held(target: str, registry: Registry) -> str:
    """Return the digest of what a tag names already; nothing when that can't be said.

    A registry whose tags never move refuses the same image again too: ECR does (PutImage,
    ``ImageTagAlreadyExistsException``; github.com/aws/containers-roadmap/issues/2179).
    """
    command = [*_SKOPEO, "inspect", "--raw", *_options("", registry), target]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        return ""
    return f"sha256:{hashlib.sha256(done.stdout).hexdigest()}"


def _push(layout: Path, target: str, registry: Registry) -> None:
    command = [*_SKOPEO, "copy", "--quiet", *_options("dest-", registry)]
    run(f"pushing {target}", [*command, "--preserve-digests", f"oci:{layout}:image", target])


def _options(side: str, registry: Registry) -> list[str]:
    verify = f"--{side}tls-verify={'false' if registry.insecure else 'true'}"
    return [verify, f"--{side}authfile={registry.login}"] if registry.login else [verify]


def _write_layout(layout: Path, recipe: Recipe, layers: list[Layer]) -> str:
    """Write an OCI image layout and return the digest of its manifest."""
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    for layer in layers:
        os.link(layer.path, blobs / layer.digest.removeprefix("sha256:"))
    configuration = _add(blobs, _configuration(recipe, layers))
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": {"mediaType": f"{_OCI}.config.v1+json", **configuration},
        "layers": [
            {
                "mediaType": f"{_OCI}.layer.v1.tar+gzip",
                "digest": layer.digest,
                "size": layer.size_bytes,
            }
            for layer in layers
        ],
    }
    described = _add(blobs, manifest)
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": f"{_OCI}.manifest.v1+json",
                **described,
                "annotations": {"org.opencontainers.image.ref.name": "image"},
            }
        ],
    }
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return str(described["digest"])


def _configuration(recipe: Recipe, layers: list[Layer]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "User": recipe.user,
        "WorkingDir": recipe.workdir,
        "Env": [f"{name}={value}" for name, value in sorted(recipe.env.items())],
    }
    if recipe.entrypoint:
        config["Entrypoint"] = list(recipe.entrypoint)
    if recipe.stop_signal:
        config["StopSignal"] = recipe.stop_signal
    return {
        "architecture": architecture(),
        "os": "linux",
        "created": _CREATED,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
    }


def _add(blobs: Path, value: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}
