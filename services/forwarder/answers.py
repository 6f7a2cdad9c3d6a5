"""Watching an answer on its way to the client, for the hooks that run after it."""

import json
from typing import Any

from services.core.exchange import Message, Send
from services.core.relay import header

from .hooks import RESULT_BYTES


class WatchedSend:
    """Passes everything on, and remembers what hooks are told.

    Args:
        send: the client's side.
        keeps: whether a plain answer is kept, up to a limit.
    """

    def __init__(self, send: Send, *, keeps: bool) -> None:
        self._send = send
        self._keeps = keeps
        self._parts: list[bytes] = []
        self.streamed = False
        self.answer_bytes = 0

    async def __call__(self, message: Message) -> None:
        """Pass one message on."""
        if message["type"] == "http.response.start":
            kind = header(message["headers"], b"content-type") or b""
            self.streamed = kind.startswith(b"text/event-stream")
            self._keeps = self._keeps and not self.streamed
        elif piece := message.get("body", b""):
            self.answer_bytes += len(piece)
            if self._keeps and self.answer_bytes > RESULT_BYTES:
                self._keeps = False
                self._parts.clear()
            if self._keeps:
                self._parts.append(piece)
        await self._send(message)

    def result(self) -> Any:
        """Return the answer as JSON data, or None when it isn't kept."""
        return as_json(b"".join(self._parts)) if self._keeps and self._parts else None


def as_json(body: bytes) -> Any:
    """Return a body as JSON data, or as text when it isn't JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
