"""The gateway and its surroundings as the tests run them."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from service_harness import (
    KubeApi,
    Model,
    Postgres,
    RedisServer,
    Service,
    add_endpoint,
    metric,
    until,
)

WORKERS = "llm_platform_gateway_ready_workers"
WAITING = "llm_platform_gateway_waiting"

KEYS = {
    "admin": "lp-admin-key-that-is-long-enough-to-be-one",
    "red": "lp-red-key-that-is-long-enough-to-be-one-canary",
    "blue": "lp-blue-key-that-is-long-enough-to-be-one",
}


@dataclass
class Platform:
    """A running gateway, and what stands around it."""

    gateway: Service
    postgres: Postgres
    redis: RedisServer
    database: str
    kube: KubeApi
    keys_dir: Path
    endpoint: str = ""
    forwarder: Service = field(default_factory=lambda: Service("", {}))
    model: Model = field(default_factory=Model)
    services: list[Service] = field(default_factory=list)
    added: list[tuple[str, str]] = field(default_factory=list)

    def headers(self, team: str = "red") -> dict[str, str]:
        return {"authorization": f"Bearer {KEYS[team]}"}

    def session(self, team: str = "red") -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0)
        return aiohttp.ClientSession(
            self.gateway.url, headers=self.headers(team), auto_decompress=False, connector=connector
        )

    def body(self, **fields: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": "hello"}]
        return {"model": self.endpoint, "messages": messages, **fields}

    async def post(
        self, path: str = "/v1/chat/completions", team: str = "red", **fields: Any
    ) -> "Answer":
        async with (
            self.session(team) as session,
            session.post(
                path,
                data=io.BytesIO(json.dumps(self.body(**fields)).encode()),
                headers={"content-type": "application/json"},
            ) as answer,
        ):
            return Answer(answer.status, answer.headers, await answer.read())

    async def add(
        self, name: str, workers: dict[int, bool | None], team: str = "red", **fields: Any
    ) -> None:
        """Make an endpoint known to the gateway, as the cacher does."""
        add_endpoint(self.postgres, self.database, name, team, **fields)
        self.added.append((f"team-{team}", name))
        self.set_workers(name, workers, team)
        await self.known(name)
        ready = [port for port, state in workers.items() if state]
        if ready:
            await self.routed(name, ready)

    def add_record(self, name: str, team: str = "red", **fields: Any) -> None:
        """Write an endpoint's record, and tell the gateway to look."""
        add_endpoint(self.postgres, self.database, name, team, **fields)
        self.redis.command("PUBLISH", "llm-platform:endpoints", "[]")

    def set_workers(self, name: str, workers: dict[int, bool | None], team: str = "red") -> None:
        self.kube.put_slice(f"team-{team}", name, workers)

    async def known(self, name: str) -> None:
        async def listed() -> bool:
            self.redis.command("PUBLISH", "llm-platform:endpoints", "[]")
            async with self.session("admin") as session, session.get("/v1/models") as answer:
                return name in [model["id"] for model in (await answer.json())["data"]]

        await until(listed)

    async def routed(self, name: str, ports: list[int]) -> None:
        async def followed() -> bool:
            return await metric(self.gateway.url, WORKERS, endpoint=name) == len(ports)

        await until(followed)

    async def waiting(self, name: str = "") -> float:
        """Return how many requests of an endpoint the gateway holds."""
        return await metric(self.gateway.url, WAITING, endpoint=name or self.endpoint)

    async def held(self, count: int, name: str = "") -> None:
        """Wait until the gateway holds that many requests of an endpoint."""

        async def are() -> bool:
            return await self.waiting(name) == count

        await until(are)

    async def new_forwarder(self, model: Model, **env: str) -> Service:
        service = forwarder_of(model, **env)
        self.services.append(service)
        await service.start()
        return await service.ready()

    async def clean(self) -> None:
        for service in self.services:
            await service.stop()
        self.services.clear()
        for namespace, name in self.added:
            self.kube.put_slice(namespace, name, {})
        self.added.clear()

    async def logged(self, **fields: Any) -> dict[str, Any]:
        """Wait for the gateway's line of a request of this endpoint."""
        wanted = {"endpoint": self.endpoint, **fields}

        def found() -> dict[str, Any] | None:
            for line in reversed(self.gateway.said("request")):
                if wanted.items() <= line.items():
                    return line
            return None

        return await until(found)

    async def gateway_idle(self) -> bool:
        return await metric(self.gateway.url, "llm_platform_gateway_in_flight") == 0

    async def forwarder_idle(self) -> bool:
        return await metric(self.forwarder.url, "llm_platform_forwarder_in_flight") == 0


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Any
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.body)["error"]


def forwarder_of(model: Model, **env: str) -> Service:
    defaults = {
        "ENDPOINT": "m",
        "UPSTREAM": f"http://127.0.0.1:{model.port}",
        "MAX_CONCURRENCY": "50",
        "HEALTH_EVERY_SECONDS": "0.1",
        "LINGER_SECONDS": "0.2",
        "DRAIN_SECONDS": "20",
    }
    return Service("services.forwarder", {**defaults, **env})


def gateway_of(
    postgres: Postgres, database: str, redis: RedisServer, kube: KubeApi, keys_dir: Path, **env: str
) -> Service:
    defaults = {
        "DATABASE_URL": f"{postgres.url}/{database}",
        "REDIS_URL": redis.url,
        "KUBECONFIG": str(kube.kubeconfig),
        "KEYS_DIR": str(keys_dir),
        "REFRESH_SECONDS": "1",
        "LINGER_SECONDS": "0.2",
        "DRAIN_SECONDS": "20",
    }
    return Service("services.gateway", {**defaults, **env})
