"""Processes that outlive the shell that started them, and that are surely ours when stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from .errors import StepError

# The shell notes who it is before it becomes the program, so there is no moment at which
# a process runs that no record knows, even when `up` is killed.
_LAUNCHER = (
    'record=$1; shift; cat /proc/$$/stat /proc/sys/kernel/random/boot_id >"$record.new" '
    '&& mv "$record.new" "$record" && exec "$@"'
)
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Identity:
    """What tells a process from a later one that was given the same number.

    Args:
        pid: Its number.
        start_ticks: When it started, in clock ticks since the machine did.
        boot_id: Which start of the machine that was.
    """

    pid: int
    start_ticks: int
    boot_id: str


def identity_of(record: str) -> Identity | None:
    """Read a record: a line of /proc/PID/stat, then the boot id; None when it is no such thing."""
    # The second field is the program's name in parentheses, which may hold anything.
    head, _, rest = record.partition("(")
    fields = rest.rpartition(")")[2].split()
    if not head.strip().isdigit() or len(fields) < 21 or not fields[19].isdigit():
        return None
    return Identity(int(head), int(fields[19]), fields[-1])


def is_running(identity: Identity, stat: str, boot_id: str) -> bool:
    """Decide whether the process whose /proc/PID/stat reads `stat` is the one that is meant.

    Args:
        identity: The process that was started.
        stat: The present content of /proc/PID/stat; empty when there is none.
        boot_id: The machine's present boot id.
    """
    present = identity_of(f"{stat} {boot_id}")
    return present == identity and stat.rpartition(")")[2].split()[0] != "Z"


def current_identity(pid: int) -> Identity | None:
    """Return who has this number now; None when nobody has."""
    return identity_of(f"{_stat(pid)} {_boot_id()}")


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Process:
    """One long-running program of the lab.

    Args:
        name: Its name in `status` and of its files.
        record: The file that tells which process it is.
        log: The file that takes its output.
    """

    name: str
    record: Path
    log: Path

    @property
    def identity(self) -> Identity | None:
        """Who was started last, whether or not it still runs."""
        try:
            return identity_of(self.record.read_text(errors="replace"))
        except OSError:
            return None

    @property
    def pid(self) -> int | None:
        """The number of the running process; None when it doesn't run."""
        identity = self.identity
        running = identity and is_running(identity, _stat(identity.pid), _boot_id())
        return identity.pid if identity and running else None

    def start(self, argv: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Start the program in a session of its own, unless it runs."""
        if self.pid:
            return
        self.record.parent.mkdir(parents=True, exist_ok=True)
        self.record.unlink(missing_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _LAUNCHER, "sh", str(self.record), *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                start_new_session=True,
            )
        wait_until(lambda: self.record.exists() or child.poll() is not None, 10)
        if not self.record.exists():
            raise StepError(f"starting {self.name}", "it ended at once", self.log)
        _children.append(child)

    def terminate(self) -> None:
        """Ask the program to end, without waiting for it."""
        if pid := self.pid:
            _signal_group(pid, signal.SIGTERM)

    def stop(self) -> None:
        """End the program and what it started in its session; forget it."""
        pid = self.pid
        if pid:
            self.terminate()
            wait_until(lambda: self.pid is None, _STOP_SECONDS)
            _signal_group(pid, signal.SIGKILL)
            wait_until(lambda: self.pid is None, _STOP_SECONDS)
        self.record.unlink(missing_ok=True)


# Kept so that one that ends while we look is reaped, and not taken for a running one.
_children: list[subprocess.Popen[bytes]] = []


def reap() -> None:
    """Collect those of our own children that have ended."""
    _children[:] = [child for child in _children if child.poll() is None]


def _signal_group(pid: int, number: signal.Signals) -> None:
    # A process that leads a session has its own number as its group's, and the number
    # isn't given away as long as the group has a member.
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for the condition; return whether it came true in time."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        if condition():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)


def kill(identities: Iterable[Identity]) -> None:
    """Kill these processes at once and wait until they are gone; never one with a reused number."""
    targets = list(identities)
    for identity in targets:
        if is_running(identity, _stat(identity.pid), _boot_id()):
            try:
                os.kill(identity.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    wait_until(
        lambda: not any(is_running(each, _stat(each.pid), _boot_id()) for each in targets),
        _STOP_SECONDS,
    )


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Yield each process's number and arguments."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                raw = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            yield int(folder.name), [word.decode(errors="replace") for word in raw.split(b"\0")]


def shims_of(socket: Path, processes: Iterable[tuple[int, list[str]]]) -> list[int]:
    """Pick the containerd shims that serve the containerd at `socket`.

    A shim outlives its containerd, on purpose, so no record of ours has its number; but it
    is called with the address of the containerd it belongs to.

    Args:
        socket: The containerd's socket.
        processes: Numbers and arguments of all processes.
    """
    return [
        pid
        for pid, argv in processes
        if Path(argv[0]).name.startswith("containerd-shim")
        and ("-address", str(socket)) in pairwise(argv)
    ]
