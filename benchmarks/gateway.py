"""What the gateway costs: direct, through a bare aiohttp proxy, through the gateway; in one run.

Prints one JSON line. Needs wrk, Postgres 15 and redis-server on the machine; LiteLLM's proxy is
measured too where an environment of its own has it, for its packages don't go with ours:

    python3 -m venv /tmp/litellm && /tmp/litellm/bin/pip install 'litellm[proxy]'
    python benchmarks/gateway.py [--seconds 5] [--rounds 3] [--litellm /tmp/litellm]
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "services")]

# ruff: noqa: E402, PLC0415, ASYNC220, ASYNC221, ASYNC240  (a script, not a server)
from service_harness import KubeApi, Postgres, RedisServer, add_endpoint, free_port, running, until
from service_platform import KEYS, gateway_of

ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x" * 400}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 100, "total_tokens": 110},
    }
).encode()
PATH = "/v1/chat/completions"
CONNECTIONS = (16, 1)
Figures = dict[tuple[str, int], list[tuple[float, float, float]]]


def backend(port: int) -> None:
    """Answer every request with the same bytes, as quickly as Python can."""
    import httptools
    import uvloop

    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    whole = head % len(ANSWER) + ANSWER

    class Backend(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport
            self.parser = httptools.HttpRequestParser(self)

        def data_received(self, data):
            self.parser.feed_data(data)

        def on_message_complete(self):
            self.transport.write(whole)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port)
        await server.serve_forever()

    uvloop.run(main())


def bare_proxy(port: int, upstream: int) -> None:
    """Pass everything on and check nothing: what aiohttp's server and client cost."""
    import aiohttp
    import uvloop
    from aiohttp import web

    hop_by_hop = {"host", "connection", "transfer-encoding", "content-length"}

    async def main() -> None:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
        )

        async def handle(request: web.Request) -> web.StreamResponse:
            url = f"http://127.0.0.1:{upstream}{request.path_qs}"
            headers = {k: v for k, v in request.headers.items() if k.lower() not in hop_by_hop}
            body = await request.read()
            async with session.request(request.method, url, headers=headers, data=body) as answer:
                response = web.StreamResponse(status=answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in {"connection", "transfer-encoding"}:
                        response.headers[name] = value
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    uvloop.run(main())


def litellm_proxy(home: Path, folder: Path, port: int, upstream: int) -> subprocess.Popen[bytes]:
    """Start LiteLLM's proxy, one process, with a key and with that one model."""
    config = folder / "litellm.json"  # which is YAML too
    model = {
        "model": "openai/m",
        "api_base": f"http://127.0.0.1:{upstream}/v1",
        "api_key": "none",
    }
    config.write_text(
        json.dumps(
            {
                "model_list": [{"model_name": "m", "litellm_params": model}],
                "general_settings": {"master_key": KEYS["red"]},
            }
        )
    )
    command = [home / "bin/litellm", "--config", config, "--port", str(port), "--num_workers", "1"]
    quiet = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--telemetry", "False"],
        cwd=folder,
        env={**os.environ, **quiet, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=(folder / "litellm.log").open("wb"),
    )


async def wrk(port: int, connections: int, seconds: float, script: Path) -> tuple[float, float]:
    """Return requests per second and the median latency in milliseconds."""
    url = f"http://127.0.0.1:{port}{PATH}"
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        str(script),
        url,
    ]
    # It also says on its standard error, again and again, that nobody listens yet.
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    output = (await process.communicate())[0].decode()
    assert "Non-2xx" not in output, output
    assert "Socket errors" not in output, output
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])
    value, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", output).groups()
    return rate, float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


async def measure(seconds: float, rounds: int, litellm: Path | None) -> dict[str, object]:
    """Start everything, and ask each in turn so that the machine's moods meet all of them."""
    with tempfile.TemporaryDirectory(prefix="llm-platform-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("pg", "redis", "keys"):
            (folder / part).mkdir()
        with (
            running(Postgres(folder / "pg")) as postgres,
            running(RedisServer(folder / "redis")) as redis,
        ):
            return await _measure(folder, postgres, redis, seconds, rounds, litellm)


async def _measure(  # noqa: PLR0917
    folder: Path,
    postgres: Postgres,
    redis: RedisServer,
    seconds: float,
    rounds: int,
    litellm: Path | None,
):
    database = postgres.new_database()
    url = f"{postgres.url}/{database}"
    subprocess.run(
        [sys.executable, "-m", "services.gateway", "migrate"],
        check=True,
        cwd=ROOT,
        env={"LLM_PLATFORM_DATABASE_URL": url},
        stdout=subprocess.DEVNULL,
    )
    add_endpoint(postgres, database, "m", "red")
    for team, key in KEYS.items():
        (folder / "keys" / team).write_text(key)
    ports = {"direct": free_port(), "bare": free_port()}
    this = [sys.executable, __file__]
    children = [
        subprocess.Popen([*this, *arguments], stderr=subprocess.DEVNULL)
        for arguments in (
            ["--backend", str(ports["direct"])],
            ["--bare", str(ports["bare"]), "--upstream", str(ports["direct"])],
        )
    ]
    if litellm is not None:
        ports["litellm"] = free_port()
        children.append(litellm_proxy(litellm, folder, ports["litellm"], ports["direct"]))
    kube = KubeApi(folder)
    await kube.start()
    kube.put_slice("team-red", "m", {ports["direct"]: True})
    ports["gateway"] = free_port()
    port = {"PORT": str(ports["gateway"])}
    gateway = gateway_of(postgres, database, redis, kube, folder / "keys", **port)
    script = folder / "post.lua"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello " * 50}]})
    script.write_text(
        f"wrk.method = 'POST'\nwrk.body = [[{body}]]\n"
        "wrk.headers['Content-Type'] = 'application/json'\n"
        f"wrk.headers['Authorization'] = 'Bearer {KEYS['red']}'\n"
    )
    try:
        # Its logs go where a container's go: written by it, read by nobody here.
        await gateway.start(log=folder / "gateway.log", port=ports["gateway"])
        await until(gateway.is_ready, 60)
        assert gateway.process is not None
        pids = [child.pid for child in children] + [gateway.process.pid]
        processes = dict(zip(ports, pids, strict=True))
        for port in ports.values():
            await until(lambda port=port: _answers(port, script), 120)
        figures: Figures = {}
        for _ in range(rounds):
            for connections in CONNECTIONS:
                for name, port in ports.items():
                    before = cpu_seconds(processes[name])
                    rate, median = await wrk(port, connections, seconds, script)
                    cpu = (cpu_seconds(processes[name]) - before) / (rate * seconds)
                    figures.setdefault((name, connections), []).append((rate, median, cpu))
        return _summary(figures)
    finally:
        await gateway.stop()
        await kube.stop()
        for child in children:
            child.terminate()
            child.wait()


async def _answers(port: int, script: Path) -> bool:
    try:
        await wrk(port, 1, 1, script)
    except (AssertionError, TypeError):
        return False
    return True


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _summary(figures: Figures) -> dict[str, object]:
    rate, latency, cpu = (
        {key: statistics.median(value[part] for value in values) for key, values in figures.items()}
        for part in range(3)
    )
    names = tuple(name for name, connections in figures if connections == 1)
    beside = {}
    if "litellm" in names:
        ratio = rate["gateway", 16] / rate["litellm", 16]
        beside = {"ratio_to_litellm_16_connections": round(ratio, 1)}
    return {
        "benchmark": "gateway",
        "requests_per_second_16_connections": {n: round(rate[n, 16]) for n in names},
        "median_ms_1_connection": {n: round(latency[n, 1], 3) for n in names},
        "cpu_ms_per_request_16_connections": {n: round(1000 * cpu[n, 16], 3) for n in names},
        "ratio_to_bare_16_connections": round(rate["gateway", 16] / rate["bare", 16], 2),
        "added_ms_1_connection": round(latency["gateway", 1] - latency["direct", 1], 3),
        **beside,
        "target": "ratio to bare >= 0.5, to litellm >= 20, added <= 1.5 ms",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--litellm", type=Path, help="a virtual environment with litellm[proxy]")
    parser.add_argument("--backend", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.backend:
        backend(arguments.backend)
    elif arguments.bare:
        bare_proxy(arguments.bare, arguments.upstream)
    else:
        print(
            json.dumps(asyncio.run(measure(arguments.seconds, arguments.rounds, arguments.litellm)))
        )


if __name__ == "__main__":
    main()
