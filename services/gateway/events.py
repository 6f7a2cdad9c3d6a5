"""Reading server-sent events out of the pieces in which they come."""

from collections.abc import Iterator

from services.core.errors import UpstreamBroke

DONE = b"[DONE]"
"""How OpenAI's streams say that they are complete."""


class EventReader:
    """Cuts a stream into the data of its events.

    Args:
        limit_bytes: the longest event.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take a piece; yield the data of each event that is whole now.

        Raises:
            UpstreamBroke: an event is longer than the limit.
        """
        # A carriage return at the end may be half of a line's end.
        text = self._rest + piece
        held = text.endswith(b"\r")
        lines = text[: len(text) - held].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + b"\r" * held
        if len(self._rest) + self._size > self._limit_bytes:
            raise UpstreamBroke(f"an event is longer than {self._limit_bytes} bytes")
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[bytes]:
        """Yield what is left when the stream ends without its last empty line."""
        yield from self._line(self._rest.rstrip(b"\r"))
        yield from self._line(b"")
        self._rest = b""

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(value)
        elif self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            self._size = 0
            yield data
