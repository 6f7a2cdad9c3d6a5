"""Endpoints that tests declare as an app team does: by a Pulumi program of the team's own."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from pulumi import automation

from components import (
    LocalPlatform,
    ModelEndpoint,
    ModelEndpointArgs,
    Resources,
    RunnableImage,
)
from deploy.local import PLATFORM

from .conftest import NAMESPACE, TEAM_NAMESPACE, Running

PLATFORM_STACK = f"organization/llm-platform/{PLATFORM}"
STUB = (Path(__file__).parent / "stub_model.py").read_text()
REQUEST_LIMIT_SECONDS = 300
Declare = Callable[[LocalPlatform], ModelEndpointArgs]


class TeamStack:
    """The team's stack; each ``up`` declares the whole set of its endpoints."""

    def __init__(self, running: Running, folder: Path) -> None:
        self._endpoints: dict[str, dict[str, Any]] = {}
        deployments = running.objects("deployments", NAMESPACE, "app.kubernetes.io/name=gateway")
        pod = deployments[0]["spec"]["template"]["spec"]
        self._image = pod["containers"][0]["image"]
        self._stack = automation.create_or_select_stack(
            "scaling",
            project_name="search-team",
            program=self._program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder), env_vars=dict(running.engine.environ)
            ),
        )

    def _program(self) -> None:
        platform = LocalPlatform.read(PLATFORM_STACK, team="demo")
        for name, declared in self._endpoints.items():
            fields = dict(declared)
            env = fields.pop("env", {})
            runtime = RunnableImage(
                image=self._image,
                command=("tini", "--", "python3", "-c", STUB),
                env=env,
                stream_path="/stream",
            )
            args = ModelEndpointArgs(
                platform=platform,
                runtime=runtime,
                resources=Resources(cpu="20m", memory="96Mi"),
                **fields,
            )
            ModelEndpoint(name, args)

    def up(self, **endpoints: Mapping[str, Any]) -> Mapping[str, int]:
        """Declare these endpoints too, or anew, and return what the update did."""
        for name, fields in endpoints.items():
            self._endpoints[name.replace("_", "-")] = dict(fields)
        summary = self._stack.up().summary
        return summary.resource_changes or {}

    def remove(self, name: str) -> None:
        """Take one endpoint out of the program, and update."""
        del self._endpoints[name]
        self._stack.up()

    def destroy(self) -> None:
        """Take all of them away, and the stack itself."""
        self._stack.destroy()
        self._stack.workspace.remove_stack(self._stack.name)


class Calls:
    """Calls of the tasks API, many at once; each outcome is counted."""

    def __init__(self, running: Running) -> None:
        self._http = httpx.Client(
            base_url=running.address,
            headers={"Authorization": f"Bearer {running.team_key}"},
            timeout=REQUEST_LIMIT_SECONDS,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )
        self.outcomes: Counter[str] = Counter()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def sync(self, endpoint: str, **wanted: Any) -> dict[str, Any]:
        """Run a sync task and return its result; anything but a success fails."""
        body = {"args": wanted, "timeout_seconds": REQUEST_LIMIT_SECONDS}
        reply = self._http.post("/v1/sync-tasks", params={"model_endpoint_id": endpoint}, json=body)
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text}"
        task = reply.json()
        assert task["status"] == "SUCCESS", task
        return json.loads(task["result"]["result"])

    def submit(self, endpoint: str, **wanted: Any) -> str:
        """Submit an async task and return its id."""
        reply = self._http.post(
            "/v1/async-tasks", params={"model_endpoint_id": endpoint}, json={"args": wanted}
        )
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text}"
        return reply.json()["task_id"]

    def task(self, task_id: str) -> dict[str, Any]:
        """Ask for a task."""
        reply = self._http.get(f"/v1/async-tasks/{task_id}")
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text}"
        return reply.json()

    def dead_letters(self, endpoint: str) -> list[dict[str, Any]]:
        """List what no worker could carry out."""
        reply = self._http.get(
            "/v1/async-tasks/dead-letters", params={"model_endpoint_id": endpoint}
        )
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text}"
        return reply.json()["dead_letters"]

    @contextmanager
    def steady(self, endpoint: str, clients: int, **wanted: Any) -> Iterator[threading.Event]:
        """Keep so many sync tasks open all the time; ends by itself when told to."""
        ending = threading.Event()

        def ask_on() -> None:
            while not ending.is_set():
                try:
                    self.outcomes[self.sync(endpoint, **wanted)["version"]] += 1
                except (AssertionError, httpx.HTTPError) as error:
                    self.outcomes[f"{type(error).__name__}: {error}"] += 1

        with ThreadPoolExecutor(clients) as pool:
            asking = [pool.submit(ask_on) for _ in range(clients)]
            try:
                yield ending
            finally:
                ending.set()
                for each in asking:
                    each.result(REQUEST_LIMIT_SECONDS + 20)


class Workers:
    """What the cluster says of an endpoint's workers."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def wanted(self, endpoint: str) -> int:
        """How many there should be."""
        return self._deployment(endpoint)["spec"]["replicas"]

    def ready(self, endpoint: str) -> int:
        """How many take requests."""
        return self._deployment(endpoint).get("status", {}).get("readyReplicas", 0)

    def owners(self, endpoint: str) -> set[str]:
        """Which objects scale it."""
        horizontal = {
            f"HorizontalPodAutoscaler/{it['metadata']['name']}"
            for it in self._running.objects("horizontalpodautoscalers", TEAM_NAMESPACE)
            if it["spec"]["scaleTargetRef"]["name"] == endpoint
        }
        scaled = {
            f"ScaledObject/{it['metadata']['name']}"
            for it in self._running.objects("scaledobjects.keda.sh", TEAM_NAMESPACE)
            if it["spec"]["scaleTargetRef"]["name"] == endpoint
        }
        return horizontal | scaled

    def autoscaler(self, endpoint: str) -> dict[str, Any]:
        """The HorizontalPodAutoscaler that scales it."""
        (found,) = [
            it
            for it in self._running.objects("horizontalpodautoscalers", TEAM_NAMESPACE)
            if it["spec"]["scaleTargetRef"]["name"] == endpoint
        ]
        return found

    def _deployment(self, endpoint: str) -> dict[str, Any]:
        (found,) = self._running.objects(
            "deployments", TEAM_NAMESPACE, f"llm-platform/endpoint={endpoint}"
        )
        return found

    @contextmanager
    def watched(self, endpoint: str) -> Iterator[list[tuple[int, int]]]:
        """Record every number of wanted and ready workers that is seen meanwhile."""
        seen: list[tuple[int, int]] = []
        ending = threading.Event()

        def look() -> None:
            while not ending.is_set():
                deployment = self._deployment(endpoint)
                now = (
                    deployment["spec"]["replicas"],
                    deployment.get("status", {}).get("readyReplicas", 0),
                )
                if not seen or seen[-1] != now:
                    seen.append(now)
                ending.wait(0.5)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield seen
        finally:
            ending.set()
            watcher.join()


def until(condition: Callable[[], Any], what: str, limit_seconds: float = 240) -> Any:
    """Wait until a condition holds, and return what it gave."""
    deadline = time.monotonic() + limit_seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {limit_seconds} s"
        time.sleep(0.5)
    return result
