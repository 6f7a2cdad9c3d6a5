"""How many workers serve an endpoint, and how many requests each takes."""

from typing import Any, Self

from pydantic import Field, model_validator

from .args import Args

CONCURRENCY_MARGIN = 2
"""The forwarder's limit over the scaling target, unless said otherwise."""


class Scaling(Args):
    """The number of workers and their concurrency.

    This version runs a fixed number of workers: ``min_workers`` and ``max_workers`` are equal.
    """

    min_workers: int = Field(default=1, ge=1)
    """Workers that always run."""
    max_workers: int = Field(default=1, ge=1)
    """Workers at most; as many as ``min_workers`` when left out."""
    per_worker: int = Field(default=4, ge=1)
    """Concurrent requests per worker that the number of workers is chosen for."""
    max_concurrency: int = Field(default=8, ge=2)
    """Concurrent requests per worker above which it answers 429; by default 2x ``per_worker``."""

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
        given.setdefault("max_workers", given.get("min_workers", 1))
        per_worker = given.get("per_worker", 4)
        if isinstance(per_worker, int):
            given.setdefault("max_concurrency", CONCURRENCY_MARGIN * per_worker)
        return given

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.max_workers != self.min_workers:
            raise ValueError(
                f"min_workers={self.min_workers} and max_workers={self.max_workers} differ, "
                "but this version runs a fixed number of workers: make them equal"
            )
        if self.max_concurrency <= self.per_worker:
            raise ValueError(
                f"max_concurrency={self.max_concurrency} must be above per_worker="
                f"{self.per_worker}: a limit at the target is never exceeded, so never scales out"
            )
        return self
