"""A model that does what each request asks for; runs in the services' image, as a user's would.

Its source is handed to the container's Python, so that no image has to be made for the tests.
"""

import asyncio
import json
import os
import signal
import socket
from typing import Any

from aiohttp import web

START_SECONDS = float(os.environ.get("START_SECONDS", "0"))
VERSION = os.environ.get("VERSION", "1")


async def healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def predict(request: web.Request) -> web.Response:
    wanted: dict[str, Any] = await request.json()
    if wanted.get("die"):
        os._exit(1)
    await asyncio.sleep(wanted.get("seconds", 0))
    answer = {"echo": wanted.get("echo"), "worker": socket.gethostname(), "version": VERSION}
    return web.json_response(answer)


async def stream(request: web.Request) -> web.StreamResponse:
    wanted: dict[str, Any] = await request.json()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for number in range(wanted.get("events", 3)):
        await response.write(b"data: " + json.dumps({"number": number}).encode() + b"\n\n")
        await asyncio.sleep(wanted.get("every_seconds", 0))
    return response


async def main() -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await asyncio.sleep(START_SECONDS)
    app = web.Application()
    app.add_routes(
        [web.get("/healthz", healthz), web.post("/predict", predict), web.post("/stream", stream)]
    )
    runner = web.AppRunner(app, shutdown_timeout=30)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 5005).start()
    await ending.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
