"""Programs that are run to their end, and files that appear whole or not at all."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import IO

from .errors import StepError
from .progress import Heartbeat, Report

SHOWN_LINES = 15


def run(
    step: str, argv: Sequence[str | Path], *, stdin: str = "", env: Mapping[str, str] | None = None
) -> str:
    """Run a short program and return what it printed; raise `StepError` when it fails.

    Args:
        step: What this does, in words, for the error.
        argv: The program and its arguments.
        stdin: What it reads.
        env: Its whole environment; default: ours.
    """
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            input=stdin,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise StepError(step, f"cannot run {argv[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise StepError(step, tail(done.stderr or done.stdout) or f"exit code {done.returncode}")
    return done.stdout


def run_quietly(argv: Sequence[str | Path], *, stdin: str = "") -> str:
    """Run a program whose failure means that there is nothing to do; return its output."""
    try:
        done = subprocess.run(
            [str(word) for word in argv], input=stdin, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def run_logged(
    step: str,
    argv: Sequence[str | Path],
    log: Path,
    report: Report,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    keep_open: Sequence[int] = (),
) -> None:
    """Run a long program with its output in a log, and show that it is alive.

    Args:
        step: What this does, in words.
        argv: The program and its arguments.
        log: The file that takes what it prints.
        report: Where the signs of life go.
        cwd: The folder it runs in.
        env: Its whole environment; default: ours.
        keep_open: File descriptors that it inherits.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    heartbeat = Heartbeat(report, step)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            pass_fds=tuple(keep_open),
        )
        while process.poll() is None:
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                heartbeat.beat(_state_of(log))
    if process.returncode != 0:
        reason = tail(log.read_text(errors="replace"))
        raise StepError(step, f"{reason}\n  exit code {process.returncode}", log)


def _state_of(log: Path) -> str:
    lines = log.read_bytes().splitlines()
    return (
        f"{len(lines)} lines in the log, last: {lines[-1].decode(errors='replace')}"
        if lines
        else ""
    )


def tail(text: str, lines: int = SHOWN_LINES) -> str:
    """Return the last lines of `text`."""
    return "\n".join(text.strip().splitlines()[-lines:])


def write(path: Path, text: str | bytes, mode: int = 0o644) -> Path:
    """Write a file in one step, with its folders, so that a kill leaves the old one or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode() if isinstance(text, str) else text
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


@contextmanager
def alone(lock: Path, report: Report, busy: str) -> Iterator[int]:
    """Hold a lock that ends with this process, saying `busy` when another one has it.

    Whoever holds it may remove the file.
    """
    file = _locked(lock, report, busy)
    while not _is_still(file, lock):
        file.close()
        file = _locked(lock, report, busy)
    with file:
        yield file.fileno()


def _locked(lock: Path, report: Report, busy: str) -> IO[str]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    file = lock.open("w")
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        report(busy)
        flock(file, LOCK_EX)
    return file


def _is_still(file: IO[str], path: Path) -> bool:
    """Tell whether the open file is the one at `path`, and not one that was removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
