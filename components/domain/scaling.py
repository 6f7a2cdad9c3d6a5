"""How many workers serve an endpoint, how many requests each takes, and how that changes."""

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from .args import Args
from .metrics import WINDOWS
from .registration import EndpointType
from .scaling_source import Prometheus, Source

CONCURRENCY_MARGIN = 2
"""The forwarder's limit over the scaling target, unless said otherwise."""

POLLING_SECONDS, COLD_POLLING_SECONDS = 30, 5
"""How often KEDA asks: of an endpoint that sleeps a caller waits for the answer."""

_LONGEST_STABILIZATION = 3600
_LONGEST_PERIOD = 1800
"""Kubernetes' own limits."""


class Scaling(Args):
    """The number of workers, their concurrency, and how fast the one follows the other.

    Workers wanted = ceil(concurrency / ``per_worker``), between ``min_workers`` and
    ``max_workers``. ``Scaling.cold`` and ``Scaling.warm`` are two sets of choices that fit
    together. A window, a target and a stabilisation that don't fit oscillate: workers become ready
    before the average shows them, so that more are ordered, and go at the first valley.
    """

    min_workers: int = Field(default=1, ge=0)
    """Workers that always run; 0 lets the endpoint sleep, and its first caller waits."""
    max_workers: int = Field(default=1, ge=1)
    """Workers at most; as many as ``min_workers`` when left out, and 1 at least."""
    per_worker: int = Field(default=4, ge=1)
    """Concurrent requests per worker that the number of workers is chosen for; of an ASYNC
    endpoint, tasks that wait or run."""
    max_concurrency: int = Field(default=8, ge=2)
    """Concurrent requests per worker above which it answers 429; by default 2x ``per_worker``."""
    source: Source = Field(default_factory=Prometheus)
    """Where concurrency is read: the platform's Prometheus, ``CloudWatch(…)`` or
    ``ManagedPrometheus(…)``. ASYNC endpoints ask their broker."""
    window_seconds: int = 60
    """Over how long concurrency is averaged: 20, 60, 120 or 300. Longer is calmer and later."""
    polling_interval_seconds: int = Field(default=POLLING_SECONDS, ge=1, le=3600)
    """How often KEDA asks whether to wake an endpoint or let it sleep: 30, or 5 when
    ``min_workers`` is 0. Between one worker and many, Kubernetes asks every 15 s."""
    scale_up_stabilization_seconds: int = Field(default=0, ge=0, le=_LONGEST_STABILIZATION)
    """How long more must have been wanted before workers are added."""
    cold_start_seconds: int = Field(default=60, ge=1, le=_LONGEST_PERIOD)
    """How long a worker takes from its order until it serves. Within it the workers at most double,
    or grow by ``scale_up_workers``, so that what is still loading isn't ordered twice."""
    scale_up_workers: int = Field(default=4, ge=1)
    """How many workers may always be added within ``cold_start_seconds``."""
    scale_down_stabilization_seconds: int | None = Field(
        default=None, ge=0, le=_LONGEST_STABILIZATION
    )
    """How long fewer must have been enough before workers go; 300, of an ASYNC endpoint 600."""
    cooldown_seconds: int | None = Field(default=None, ge=0)
    """How long nothing must have been asked before the last worker goes, where ``min_workers`` is
    0. At least the scale-down stabilisation, which doesn't hold for this step; as long when left
    out, and 300 (ASYNC 600) at least."""
    fallback_workers: int = Field(default=1, ge=1)
    """Workers at least while KEDA can't read the metric, for an endpoint that is awake; never fewer
    than there are. By default ``min_workers``, and 1 at least."""

    @classmethod
    def cold(cls, *, max_workers: int, **changes: Any) -> Self:
        """Return the choices for workers that take long to start: image or weights aren't on nodes.

        What is ordered now serves in twenty minutes. So a spare worker is kept, the target is low
        (more is ordered while the present ones still have room, and their limit is four times the
        target, so that they carry the burst until then), and the window is short. One cold start
        must pass before more than the double is ordered, and what took so long to get is given back
        only after half an hour without need.
        """
        chosen = {
            "min_workers": 2,
            "per_worker": 2,
            "max_concurrency": 8,
            "window_seconds": 60,
            "cold_start_seconds": 1200,
            "scale_up_workers": 2,
            "scale_down_stabilization_seconds": 1800,
        }
        return cls.model_validate({**chosen, "max_workers": max_workers, **changes})

    @classmethod
    def warm(cls, *, max_workers: int, **changes: Any) -> Self:
        """Return the choices for workers that start in seconds: image and weights are on the nodes.

        With the choices for cold starts these oscillate: workers are ready before an average over
        300 seconds shows the burst, so that more and more are ordered. So the window is a minute,
        the target is high (there is no need to order early), and 300 seconds of stabilisation keep
        the first valley from giving back what the next burst needs.
        """
        chosen = {
            "per_worker": 8,
            "window_seconds": 60,
            "cold_start_seconds": 60,
            "scale_down_stabilization_seconds": 300,
        }
        return cls.model_validate({**chosen, "max_workers": max_workers, **changes})

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one number of workers to choose."""
        return self.min_workers == self.max_workers

    @property
    def sleeps(self) -> bool:
        """Whether the endpoint has no worker while nobody asks for it."""
        return self.min_workers == 0

    def scale_down_seconds(self, kind: EndpointType) -> int:
        """Return how long fewer must have been enough before workers go."""
        if self.scale_down_stabilization_seconds is not None:
            return self.scale_down_stabilization_seconds
        return _calm_seconds(kind)

    def cooldown(self, kind: EndpointType) -> int:
        """Return how long nothing must have been asked before the last worker goes.

        Raises:
            ValueError: when it is shorter than the scale-down stabilisation.
        """
        stabilization = self.scale_down_seconds(kind)
        if self.cooldown_seconds is None:
            return max(stabilization, _calm_seconds(kind))
        if self.cooldown_seconds < stabilization:
            raise ValueError(
                f"cooldown_seconds={self.cooldown_seconds} is shorter than "
                f"scale_down_stabilization_seconds={stabilization}, which the step to zero doesn't "
                "wait for: the last worker would go before the others may; raise cooldown_seconds"
            )
        return self.cooldown_seconds

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
        least = given.get("min_workers", 1)
        if isinstance(least, int):
            given.setdefault("max_workers", max(1, least))
            given.setdefault("fallback_workers", max(1, least))
            if least == 0:
                given.setdefault("polling_interval_seconds", COLD_POLLING_SECONDS)
        per_worker = given.get("per_worker", 4)
        if isinstance(per_worker, int):
            given.setdefault("max_concurrency", CONCURRENCY_MARGIN * per_worker)
        return given

    @field_validator("max_workers", mode="before")
    @classmethod
    def _is_not_off(cls, value: object) -> object:
        if value == 0:
            raise ValueError(
                "max_workers=0 would be an endpoint that never answers: min_workers=0 has no "
                "worker while nobody asks for it, and to switch one off take it out of the program"
            )
        return value

    @field_validator("fallback_workers", mode="before")
    @classmethod
    def _is_not_nothing(cls, value: object) -> object:
        if value == 0:
            raise ValueError(
                "fallback_workers=0 makes KEDA put an endpoint to sleep when its metric can't be "
                "read, busy or not: use 1 or more, or leave it out"
            )
        return value

    @field_validator("window_seconds")
    @classmethod
    def _is_averaged(cls, value: int) -> int:
        if value not in WINDOWS:
            known = ", ".join(map(str, WINDOWS))
            raise ValueError(f"window_seconds={value} isn't averaged over: use one of {known}")
        return value

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.max_workers < self.min_workers:
            raise ValueError(
                f"max_workers={self.max_workers} is below min_workers={self.min_workers}: "
                "raise max_workers, or leave it out for a fixed number"
            )
        if self.max_concurrency <= self.per_worker:
            raise ValueError(
                f"max_concurrency={self.max_concurrency} must be above per_worker="
                f"{self.per_worker}: a limit at the target is never exceeded, so never scales out"
            )
        if self.fallback_workers > self.max_workers:
            raise ValueError(
                f"fallback_workers={self.fallback_workers} is above max_workers="
                f"{self.max_workers}: lower it, or leave it out"
            )
        if self.source.kind == "cloudwatch" and "window_seconds" in self.model_fields_set:
            raise ValueError(
                f"window_seconds={self.window_seconds} is for Prometheus: with "
                "source=CloudWatch(…) say period_seconds there"
            )
        return self


def _calm_seconds(kind: EndpointType) -> int:
    """Return how long to wait before workers go: a queue is emptied in waves."""
    return 600 if kind is EndpointType.ASYNC else 300
