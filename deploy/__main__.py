"""``python -m deploy``: the commands behind ``make up``, ``down``, ``env`` and ``preflight``."""

import argparse
import os
import shlex
import sys

from lab.errors import StepError
from lab.progress import to_terminal

from . import session
from .local import Local
from .paths import Paths


def main() -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "env", "preflight"])
    parser.add_argument("--env", default="local", help="the environment; default: local")
    arguments = parser.parse_args()
    if arguments.command == "preflight":
        return _preflight(arguments.env)
    if arguments.env != "local":
        print(f"ENV={arguments.env}: only the environment 'local' is built yet", file=sys.stderr)
        return 2
    paths, report = Paths.of_user(), to_terminal()
    try:
        if arguments.command == "env":
            for name, value in session.environment(paths).items():
                print(f"export {name}={shlex.quote(value)}")
        else:
            environment = Local(paths, os.environ, report)
            environment.up() if arguments.command == "up" else environment.down()
    except StepError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _preflight(environment: str) -> int:
    from . import preflight  # noqa: PLC0415 - only this command needs AWS's client

    try:
        plan = preflight.read(environment)
        with preflight.Aws(plan.region) as aws:
            rows = preflight.run(plan, aws, to_terminal())
    except StepError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(preflight.table(rows))
    return preflight.exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
