"""Small images without a container engine: one static binary, packed and pushed."""

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from .commands import run

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture() -> str:
    """Name this machine's processor as images do."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def image_config(entrypoint: Sequence[str], layer_digest: str, user: str) -> dict[str, Any]:
    """Describe an image of one layer.

    Args:
        entrypoint: What runs in it.
        layer_digest: `sha256:…` of the layer's uncompressed tar file.
        user: As whom, `UID:GID`.
    """
    return {
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "User": user},
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
    }


def layer(files: Mapping[str, Path]) -> bytes:
    """Pack files as a layer; the same files give the same bytes.

    Args:
        files: By path inside the image, an executable on this machine.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for target, source in sorted(files.items()):
            entry = tarfile.TarInfo(target.lstrip("/"))
            entry.size, entry.mode = source.stat().st_size, 0o755
            with source.open("rb") as content:
                archive.addfile(entry, content)
    return buffer.getvalue()


def write_archive(path: Path, binary: Path, user: str = "65532:65532") -> None:
    """Write a docker archive with an image that holds and runs one static binary.

    Args:
        path: The archive.
        binary: The program; it becomes `/NAME` in the image and its entrypoint.
        user: As whom it runs.
    """
    target = f"/{binary.name}"
    content = layer({target: binary})
    digest = hashlib.sha256(content).hexdigest()
    config = json.dumps(image_config([target], f"sha256:{digest}", user)).encode()
    manifest = [{"Config": "config.json", "RepoTags": [], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, "layer.tar", content)
        _add(archive, "config.json", config)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def push_binary(registry: str, repository: str, tag: str, binary: Path) -> str:
    """Make an image of one binary, push it unless it is there, and return its reference.

    Args:
        registry: `host:port`, served without TLS.
        repository: The image's name in it.
        tag: Its tag; it names the content, so that what is there is never outdated.
        binary: The program.
    """
    reference = f"{registry}/{repository}:{tag}"
    if not is_pushed(registry, repository, tag):
        with tempfile.TemporaryDirectory(prefix="llm-platform-image-") as folder:
            archive = Path(folder) / "image.tar"
            write_archive(archive, binary)
            push(archive, reference)
    return reference


def push(archive: Path, reference: str) -> None:
    """Push a docker archive to a registry that is served without TLS."""
    run(
        f"pushing the image {reference}",
        ["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false",
         f"docker-archive:{archive}", f"docker://{reference}"],
    )  # fmt: skip


def is_pushed(registry: str, repository: str, tag: str) -> bool:
    """Tell whether a registry has an image."""
    connection = HTTPConnection(registry, timeout=5)
    accept = (
        "application/vnd.oci.image.manifest.v1+json, "
        "application/vnd.docker.distribution.manifest.v2+json"
    )
    try:
        connection.request("HEAD", f"/v2/{repository}/manifests/{tag}", headers={"Accept": accept})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
