"""A thousand open streams through the gateway at once: whether every byte arrives.

Each stream is some seconds of server-sent events, sent piece by piece. Prints one JSON line. Needs
Postgres 15 and redis-server on the machine.

    python benchmarks/streams.py [--streams 1000] [--events 40] [--every 0.5]
"""

import argparse
import asyncio
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "services")]

# ruff: noqa: E402, ASYNC220, ASYNC221, ASYNC240  (a script, not a server)
from service_harness import KubeApi, Postgres, RedisServer, add_endpoint, free_port, running, until
from service_platform import KEYS, gateway_of

PATH = "/v1/chat/completions"
LIMIT_SECONDS = 300


def event(stream: str, number: int) -> bytes:
    """Return one event of a stream; all differ."""
    text = hashlib.sha256(f"{stream}/{number}".encode()).hexdigest()
    chunk = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def whole(stream: str, events: int) -> bytes:
    """Return all that a client has to get."""
    return b"".join(event(stream, number) for number in range(events)) + b"data: [DONE]\n\n"


async def serve(port: int, events: int, every: float) -> None:
    """Answer each request with its own stream, told apart by its header ``x-request-id``."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
                await reader.readexactly(int(fields.get("content-length", "0")))
                stream = fields["x-request-id"]
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"transfer-encoding: chunked\r\n\r\n"
                )
                for number in range(events):
                    piece = event(stream, number)
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
                    await asyncio.sleep(every)
                last = b"data: [DONE]\n\n"
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


async def one(port: int, number: int) -> tuple[str, bytes, float]:
    """Ask for one stream, and return its name, all that came, and when the first byte did."""
    import httptools  # noqa: PLC0415

    got = bytearray()
    done = asyncio.get_running_loop().create_future()
    first: list[float] = []

    class Answer:
        def on_body(self, data: bytes) -> None:
            if not first:
                first.append(time.perf_counter())
            got.extend(data)

        def on_message_complete(self) -> None:
            done.set_result(None)

    parser = httptools.HttpResponseParser(Answer())
    name = f"stream-{number:05}"
    body = json.dumps(
        {"model": "m", "stream": True, "messages": [{"role": "user", "content": name}]}
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    writer.write(
        f"POST {PATH} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEYS['red']}\r\n"
        f"content-type: application/json\r\nx-request-id: {name}\r\n"
        f"content-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    while not done.done():
        data = await reader.read(65536)
        if not data:
            break
        parser.feed_data(data)
    writer.close()
    return name, bytes(got), (first[0] if first else time.perf_counter()) - started


async def measure(streams: int, events: int, every: float) -> dict[str, object]:
    """Start everything, open all streams, and compare what came with what was sent."""
    with tempfile.TemporaryDirectory(prefix="llm-platform-streams-") as folder_name:
        folder = Path(folder_name)
        folder.chmod(0o755)
        for part in ("pg", "redis", "keys"):
            (folder / part).mkdir()
        with (
            running(Postgres(folder / "pg")) as postgres,
            running(RedisServer(folder / "redis")) as redis,
        ):
            return await _measure(folder, postgres, redis, (streams, events, every))


async def _measure(
    folder: Path, postgres: Postgres, redis: RedisServer, size: tuple[int, int, float]
) -> dict[str, object]:
    streams, events, every = size
    database = postgres.new_database()
    subprocess.run(
        [sys.executable, "-m", "services.gateway", "migrate"],
        check=True,
        cwd=ROOT,
        env={"LLM_PLATFORM_DATABASE_URL": f"{postgres.url}/{database}"},
        stdout=subprocess.DEVNULL,
    )
    add_endpoint(postgres, database, "m", "red")
    for team, key in KEYS.items():
        (folder / "keys" / team).write_text(key)
    worker, gate = free_port(), free_port()
    backend = subprocess.Popen(
        [
            *(sys.executable, __file__, "--serve", str(worker)),
            *("--events", str(events), "--every", str(every)),
        ]
    )
    kube = KubeApi(folder)
    await kube.start()
    kube.put_slice("team-red", "m", {worker: True})
    gateway = gateway_of(postgres, database, redis, kube, folder / "keys", PORT=str(gate))
    try:
        await gateway.start(log=folder / "gateway.log", port=gate)
        await until(gateway.is_ready, 60)
        assert gateway.process is not None
        async with asyncio.timeout(LIMIT_SECONDS):
            await one(gate, 0)
            started = time.perf_counter()
            answers = await asyncio.gather(*(one(gate, number) for number in range(streams)))
        took = time.perf_counter() - started
        memory = _resident_mib(gateway.process.pid)
    finally:
        await gateway.stop()
        await kube.stop()
        backend.terminate()
        backend.wait()
    broken = [got for name, got, _ in answers if got != whole(name, events)]
    if broken:
        print(f"{len(broken)} aren't whole; one of them: {broken[0][:300]!r}", file=sys.stderr)
    return {
        "benchmark": "streams",
        "streams": streams,
        "events_per_stream": events,
        "whole": sum(got == whole(name, events) for name, got, _ in answers),
        "bytes": sum(len(got) for _, got, _ in answers),
        "seconds": round(took, 1),
        "first_byte_ms_median": round(1000 * statistics.median(it for *_, it in answers), 1),
        "gateway_mib": round(memory),
        "target": "every stream whole",
    }


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--events", type=int, default=40)
    parser.add_argument("--every", type=float, default=0.5)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve, arguments.events, arguments.every))
    else:
        size = (arguments.streams, arguments.events, arguments.every)
        print(json.dumps(asyncio.run(measure(*size))))


if __name__ == "__main__":
    main()
