"""Real servers for the services' tests: Postgres, Redis, a Kubernetes API, models, and ours."""
# ruff: noqa: S608  (the tests' own statements, on the tests' own server)

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiohttp
from aiohttp import web

ROOT = Path(__file__).parents[2]
POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")
START_SECONDS = 30.0
PATIENCE = float(os.environ.get("TEST_PATIENCE", "1"))
"""How many times longer everything may take, for a machine that is busy with other things."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


async def until(condition: Callable[[], Any], seconds: float = 15.0) -> Any:
    """Wait until a condition holds, and return what it gave."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        result = condition()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"it didn't come true within {seconds} s: {condition}")
        await asyncio.sleep(0.02)


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


class Postgres:
    """An own cluster of Debian's Postgres, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"postgresql://platform:secret@127.0.0.1:{self.port}"
        self._folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._as_owner: dict[str, Any] = {}
        if os.geteuid() == 0:  # Postgres refuses to run as root
            self._as_owner = {"user": "postgres", "group": "postgres"}
            shutil.chown(folder, "postgres", "postgres")
        password = folder / "password"
        password.write_text("secret")
        password.chmod(0o644)
        self._run(
            "initdb",
            "-D",
            self._data,
            "-U",
            "platform",
            f"--pwfile={password}",
            "-A",
            "scram-sha-256",
        )

    def _run(self, program: str, *arguments: Any) -> None:
        command = [str(POSTGRES_BIN / program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._as_owner)

    def start(self) -> None:
        options = {
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [
            str(POSTGRES_BIN / "postgres"),
            "-D",
            str(self._data),
            "-p",
            str(self.port),
            *settings,
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, **self._as_owner
            )
        deadline = time.monotonic() + START_SECONDS
        ready = [str(POSTGRES_BIN / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        while subprocess.run(ready, check=False).returncode != 0:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < deadline, "postgres didn't start"
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process, signal.SIGINT)  # "fast": connections are closed
            self._process = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def sql(self, statement: str, database: str = "postgres") -> str:
        command = [
            "psql",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "platform",
            "-d",
            database,
        ]
        done = subprocess.run(
            [*command, "-X", "-t", "-A", "-c", statement],
            env={**os.environ, "PGPASSWORD": "secret"},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def dump(self, database: str) -> str:
        command = ["pg_dump", "-h", "127.0.0.1", "-p", str(self.port), "-U", "platform", database]
        done = subprocess.run(
            command,
            env={**os.environ, "PGPASSWORD": "secret"},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def new_database(self) -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def copy_of(self, template: str) -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name


class RedisServer:
    """Debian's redis-server on a port of its own, with more options if need be."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = [
            *self._options,
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--save",
            "",
            "--dir",
            str(self._folder),
        ]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                return
            assert time.monotonic() < deadline, "redis didn't start"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process)
            self._process = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *arguments],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()


class KubeApi:
    """A small Kubernetes API: lists, watches with versions, merge patches, and 410 on request."""

    KINDS = ("namespaces", "configmaps", "endpointslices", "deployments")

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.kubeconfig = folder / "kubeconfig"
        self._write_kubeconfig()
        self.objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {k: {} for k in self.KINDS}
        self.lists: list[str] = []
        self.patches: list[tuple[str, str, str]] = []
        self.scales: list[tuple[str, str, int]] = []
        self.scaled_objects: set[tuple[str, str]] = set()
        self.watch_versions: list[tuple[str, str]] = []
        self._events: dict[str, list[tuple[int, dict[str, Any]]]] = {k: [] for k in self.KINDS}
        self._version = 100
        self._forgotten_before = 0
        self._changed = asyncio.Event()
        self._cut = asyncio.Event()
        self._paused = False
        self._runner: web.AppRunner | None = None

    def _write_kubeconfig(self) -> None:
        entry = {"server": f"http://127.0.0.1:{self.port}"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "stub", "cluster": entry}],
            "users": [{"name": "stub", "user": {}}],
            "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}],
            "current-context": "stub",
        }
        self.kubeconfig.write_text(json.dumps(document))

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/namespaces", self._get)
        app.router.add_get("/api/v1/configmaps", self._get)
        app.router.add_get("/apis/discovery.k8s.io/v1/endpointslices", self._get)
        app.router.add_patch("/api/v1/namespaces/{namespace}/configmaps/{name}", self._patch)
        app.router.add_get("/apis/apps/v1/deployments", self._get)
        scale = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
        app.router.add_patch(scale, self._patch_scale)
        keda = "/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects/{name}"
        app.router.add_get(keda, self._get_scaled_object)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def running(self) -> bool:
        return self._runner is not None

    def cut_watches(self) -> None:
        self._paused = False
        self._cut.set()
        self._cut = asyncio.Event()

    def pause_events(self) -> None:
        """Send nothing on open watches until they are cut."""
        self._paused = True

    def forget_history(self) -> None:
        """From now on, watching from an old version is answered with 410 Gone."""
        self._version += 1
        self._forgotten_before = self._version

    def put(self, kind: str, item: dict[str, Any]) -> None:
        metadata = item["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        known = key in self.objects[kind]
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        metadata.setdefault("creationTimestamp", f"2026-01-01T00:00:{len(self.objects[kind]):02}Z")
        self.objects[kind][key] = item
        self._emit(kind, "MODIFIED" if known else "ADDED", item)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        item = self.objects[kind].pop((namespace, name))
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._emit(kind, "DELETED", item)

    def _emit(self, kind: str, event: str, item: dict[str, Any]) -> None:
        copy = json.loads(json.dumps(item))
        self._events[kind].append((self._version, {"type": event, "object": copy}))
        self._changed.set()
        self._changed = asyncio.Event()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.rsplit("/", 1)[1]
        selector = request.query.get("labelSelector", "")
        if request.query.get("watch"):
            return await self._watch(request, kind, selector)
        self.lists.append(kind)
        items = [item for item in self.objects[kind].values() if _matches(item, selector)]
        return web.json_response(
            {"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items}
        )

    async def _watch(self, request: web.Request, kind: str, selector: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        self.watch_versions.append((kind, request.query["resourceVersion"]))
        response = web.StreamResponse()
        await response.prepare(request)
        if since < self._forgotten_before:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return response
        cut = self._cut
        while not cut.is_set():
            changed = self._changed
            for version, event in [] if self._paused else self._events[kind]:
                if version > since and _matches(event["object"], selector):
                    await response.write(json.dumps(event).encode() + b"\n")
                since = max(since, version)
            waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(cut.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return response

    async def _patch(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        item = self.objects["configmaps"].get((namespace, name))
        if item is None:
            return web.json_response({"code": 404}, status=404)
        assert "merge-patch" in request.content_type
        patch = await request.json()
        annotations = item["metadata"].setdefault("annotations", {})
        for key, value in patch["metadata"]["annotations"].items():
            if value is None:
                annotations.pop(key, None)
            else:
                annotations[key] = value
        self.patches.append((namespace, name, json.dumps(patch)))
        self.put("configmaps", item)
        return web.json_response(item)

    async def _get_scaled_object(self, request: web.Request) -> web.Response:
        where = request.match_info["namespace"], request.match_info["name"]
        if where not in self.scaled_objects:
            return web.json_response({"code": 404}, status=404)
        return web.json_response({"kind": "ScaledObject", "metadata": {"name": where[1]}})

    async def _patch_scale(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        item = self.objects["deployments"].get((namespace, name))
        if item is None:
            return web.json_response({"code": 404}, status=404)
        assert "merge-patch" in request.content_type
        patch = await request.json()
        self.scales.append((namespace, name, patch["spec"]["replicas"]))
        version = patch.get("metadata", {}).get("resourceVersion")
        if version not in {None, item["metadata"]["resourceVersion"]}:
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        item["spec"]["replicas"] = patch["spec"]["replicas"]
        self.put("deployments", item)
        return web.json_response({"kind": "Scale", "spec": patch["spec"]})

    def put_slice(self, namespace: str, endpoint: str, workers: dict[int, bool | None]) -> None:
        """Declare workers of an endpoint by port; each is ready, or (None) ending."""
        for name in [
            n
            for ns, n in self.objects["endpointslices"]
            if ns == namespace and n.startswith(f"{endpoint}-")
        ]:
            if int(name.rsplit("-", 1)[1]) not in workers:
                self.delete("endpointslices", namespace, name)
        for port, ready in workers.items():
            conditions = {"ready": bool(ready), "serving": True, "terminating": ready is None}
            self.put(
                "endpointslices",
                {
                    "metadata": {
                        "namespace": namespace,
                        "name": f"{endpoint}-{port}",
                        "labels": {"llm-platform/endpoint": endpoint},
                    },
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": ["127.0.0.1"], "conditions": conditions}],
                    "ports": [{"name": "http", "port": port}],
                },
            )


def _matches(item: dict[str, Any], selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        name, equals, value = term.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


class Service:
    """One of our services as a real process."""

    def __init__(
        self,
        module: str,
        env: dict[str, str],
        *arguments: str,
        foreign: dict[str, str] | None = None,
    ) -> None:
        """Make one; ``foreign`` is environment whose names aren't ours, as of other programs."""
        self.port = 0
        self.lines: list[dict[str, Any]] = []
        self.raw = ""
        self._module = module
        self._arguments = arguments
        self._env = {f"LLM_PLATFORM_{name}": value for name, value in env.items()}
        self.plain_env: dict[str, str] = {}
        self._env.update(foreign or {})
        self._reader: asyncio.Task[None] | None = None
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *, log: Path | None = None, port: int = 0) -> "Service":
        """Start it; with ``log`` its lines go to that file instead of ``lines``."""
        self.port = port
        output = log.open("wb") if log else None
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *os.environ.get("SERVICE_PYTHON_OPTIONS", "").split(),
            "-m",
            self._module,
            *self._arguments,
            stdout=output or asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "LLM_PLATFORM_HOST": "127.0.0.1",
                "LLM_PLATFORM_PORT": "0",
                **self._env,
                **self.plain_env,
            },
        )
        if output is None:
            self._reader = asyncio.create_task(self._read())
        else:
            output.close()
        return self

    async def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.raw += line.decode()
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                self.lines.append(entry)
                if entry.get("event") == "listening":
                    self.port = entry["port"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("event") == event]

    async def listening(self) -> "Service":
        await until(lambda: self.port or self.exited(), START_SECONDS)
        assert self.port, self.raw
        return self

    async def ready(self) -> "Service":
        await self.listening()
        await until(self.is_ready, 30)
        return self

    async def is_ready(self) -> bool:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.url}/readyz") as answer,
            ):
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def exited(self) -> bool:
        assert self.process is not None
        return self.process.returncode is not None

    def signal(self, number: int = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def wait(self, seconds: float = 20) -> int:
        assert self.process is not None
        async with asyncio.timeout(seconds):
            code = await self.process.wait()
        if self._reader is not None:
            await self._reader
        return code

    async def stop(self) -> None:
        if self.process is not None and not self.exited():
            self.process.kill()
        if self.process is not None:
            await self.wait()


async def metric(url: str, name: str, **labels: str) -> float:
    """Read one figure of a service's metrics; 0 when it isn't there."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        text = await answer.text()
    for line in text.splitlines():
        head, _, value = line.rpartition(" ")
        if head.partition("{")[0] == name and all(f'{k}="{v}"' in head for k, v in labels.items()):
            return float(value)
    return 0.0


class Model:
    """A model server that does what its request's ``do`` says, and remembers what it saw."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[dict[str, Any]] = []
        self.aborted = 0
        self.open = 0
        self.healthy = True
        self.release = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._transports: set[asyncio.Transport] = set()

    async def start(self, port: int = 0) -> "Model":
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_get("/health", self._health)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.1, max_field_size=128 * 1024
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        self.release.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def vanish(self) -> None:
        """Go away in mid-answer, as a container that is killed."""
        runner, self._runner = self._runner, None
        assert runner is not None
        await runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({}, status=200 if self.healthy else 503)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(
            {
                "method": request.method,
                "path": request.raw_path,
                "headers": request.raw_headers,
                "body": body,
            }
        )
        self.open += 1
        transport = request.transport
        assert transport is not None
        self._transports.add(transport)
        try:
            return await self._do(request, body)
        except (asyncio.CancelledError, ConnectionResetError):
            self.aborted += 1
            raise
        finally:
            self.open -= 1
            self._transports.discard(transport)

    async def _do(  # noqa: PLR0911, PLR0912
        self, request: web.Request, body: bytes
    ) -> web.StreamResponse:
        try:
            document = json.loads(body)
        except ValueError:
            document = {}
        match document.get("do", "answer"):
            case "crash":  # everybody's answer goes with it
                for each in list(self._transports):
                    each.abort()
                return web.Response()
            case "answer" if document.get("stream"):
                return await self._stream(request, document.get("chunks", 3), 0)
            case "stream":
                return await self._stream(
                    request, document.get("chunks", 3), document.get("pause", 0)
                )
            case "hang":
                await self.release.wait()
                return web.json_response(_completion(document))
            case "hold":
                await self.release.wait()
                return web.json_response(_completion(document))
            case "status":
                return web.json_response({"error": {"message": "mine"}}, status=document["status"])
            case "die":
                response = await self._begin(request)
                await response.write(document.get("first", "data: {}\n\n").encode())
                assert request.transport is not None
                request.transport.abort()
                return response
            case "die silently":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "events":
                response = await self._begin(request)
                for event in document["events"]:
                    await response.write(event.encode())
                return response
            case "echo":
                return web.Response(body=body, content_type="application/octet-stream")
            case _:
                return web.json_response(_completion(document))

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        return response

    async def _stream(self, request: web.Request, chunks: int, pause: float) -> web.StreamResponse:
        response = await self._begin(request)
        for number in range(chunks):
            await response.write(chunk(number))
            if pause:
                await asyncio.sleep(pause)
        await response.write(b"data: [DONE]\n\n")
        return response


def chunk(number: int) -> bytes:
    """One event of a stream, as a model sends it."""
    delta = {"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None}
    document = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [delta],
    }
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def _completion(document: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "42"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    model = document.get("model", "m")
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


def registration_map(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    """Return a ConfigMap that registers an endpoint."""
    return {
        "metadata": {
            "namespace": namespace,
            "name": f"{name}-registration",
            "labels": {"llm-platform/registration": "1", "llm-platform/endpoint": name},
        },
        "data": {"registration.json": json.dumps(registration(name, **fields))},
    }


def registration(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "streaming",
        "service": name,
        "runtime": "stub",
        "image": "stub@sha256:0",
        "min_workers": 1,
        "max_workers": 1,
        "per_worker": 1,
        "max_concurrency": 2,
        **fields,
    }


def add_endpoint(postgres: Postgres, database: str, name: str, team: str, **fields: Any) -> None:
    """Write an endpoint's record, as the cacher does."""
    document = json.dumps(registration(name, **fields))
    postgres.sql(
        "INSERT INTO endpoints"
        " (name, team, namespace, registration, status, status_reason, source, stack)"
        f" VALUES ('{name}', '{team}', 'team-{team}', '{document}', 'ready', '', 'declared', '')",
        database,
    )


@contextlib.contextmanager
def running(server: Any) -> Iterator[Any]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Starting(Protocol):
    """What listens on this process's loop, from its start to its stop."""

    async def start(self) -> Any: ...

    async def stop(self) -> None: ...


ServerT = TypeVar("ServerT", bound=Starting)


@contextlib.asynccontextmanager
async def serving(server: ServerT) -> AsyncIterator[ServerT]:
    """Serve while the block runs, however it ends: a listener left open fails the whole run."""
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def served(*services: Service) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for service in services:
            await service.stop()
