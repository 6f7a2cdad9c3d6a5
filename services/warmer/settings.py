"""The warmer's settings; the bucket's server and its credentials are in AWS' own variables."""

from pathlib import Path

from pydantic import Field

from services.core.settings import ServiceSettings

MEBIBYTE = 1024 * 1024


class WarmerSettings(ServiceSettings):
    """What loading and publishing need."""

    weights_source: str = ""
    """``s3://bucket/prefix/version/``, for ``load``."""
    weights_dir: Path = Path("/weights")
    """Where ``load`` puts the files."""
    transfers: int = Field(default=8, ge=1)
    """Ranges or files that are in flight at once."""
    range_bytes: int = Field(default=16 * MEBIBYTE, ge=MEBIBYTE)
    """How much one request brings."""
    wait_seconds: float = 120
    """How long the bucket's server is waited for."""
    progress_seconds: float = 2
    """How often progress is told."""
