"""A broker without a cloud: Redis, in which a team reaches its own tasks only."""

from dataclasses import dataclass

import pulumi

from ..contracts import In
from ..foundation import BrokerKind, Grant, KedaTrigger, Queue, Redis


@dataclass(frozen=True, kw_only=True)
class RedisBroker:
    """Carries tasks in lists of one Redis server, under a prefix for each endpoint.

    Raises:
        ValueError: for a Redis whose keys are spread over servers: the queue and the books that
            are kept of it change together, which only one server can do.
    """

    redis: Redis
    """With the team's own credentials."""

    def __post_init__(self) -> None:
        if self.redis.clustered:
            raise ValueError(
                "redis is clustered, and the broker moves a task between lists in one step, which "
                "works on one server only: turn cluster mode off, or use another broker"
            )

    @property
    def kind(self) -> BrokerKind:
        """What it is."""
        return "redis"

    def queue(
        self,
        endpoint: str,
        *,
        team: str,
        namespace: In[str],
        cacher_url: In[str],
        opts: pulumi.ResourceOptions | None = None,
        lease_seconds: int = 60,
        max_deliveries: int = 5,
        expires_seconds: int = 86_400,
    ) -> Queue:
        """Return the queue of an endpoint; lists in Redis begin to exist by themselves.

        How long tasks are kept is told to those that use the lists, not to Redis.

        KEDA's own scaler of lists sees the tasks that wait and not those that run, so that it would
        stop workers at work: the cacher counts both.
        """
        url = pulumi.Output.format("{0}/scaling/{1}/{2}", cacher_url, namespace, endpoint)
        return Queue(
            grants=[Grant.consume_queue(self.redis)],
            settings={"LLM_PLATFORM_BROKER": self.kind},
            trigger=KedaTrigger(
                type="metrics-api",
                metadata={"url": url, "valueLocation": "outstanding"},
            ),
        )
