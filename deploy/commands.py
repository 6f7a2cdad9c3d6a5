"""Running other programs: their output in a log, its end in the error when they fail."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import CommandError

_TAIL_LINES = 30


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run ``command`` with its output in ``log`` and return what it printed on standard output.

    Args:
        command: The program and its arguments.
        log: Gets standard output and error; made new each time.
        env: Added to this process's environment.
        cwd: Where it runs; default here.

    Raises:
        CommandError: it isn't there, or ended with an error.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    program = Path(command[0]).name
    environment = {**os.environ, **(env or {})}
    with log.open("wb") as errors:
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=cwd,
                check=False,
            )
        except FileNotFoundError as error:
            raise CommandError(program, 127, f"{error.filename} isn't on PATH", str(log)) from error
    with log.open("ab") as whole:
        whole.write(done.stdout)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise CommandError(program, done.returncode, _tail(log), str(log))
    return output


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(f"    {line}" for line in lines[-_TAIL_LINES:])
