"""``python -m deploy``: the commands behind ``make up``, ``down``, ``env`` and ``preflight``."""

import argparse
import os
import shlex
import sys
from typing import Protocol

from lab.errors import StepError
from lab.progress import Report, to_terminal

from .errors import DeployError
from .local import Local
from .paths import REPOSITORY, Paths
from .settings import STEP, StackSettings

_FOUNDATIONS = "Pulumi.foundation.*.yaml"


def main() -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "env", "preflight"])
    parser.add_argument("--env", default="local", help="the environment; default: local")
    arguments = parser.parse_args()
    if arguments.command == "preflight":
        return _preflight(arguments.env)
    paths, report = Paths.of_user(), to_terminal()
    try:
        environment = _environment(arguments.env, paths, report)
        if arguments.command == "env":
            for name, value in environment.env().items():
                print(f"export {name}={shlex.quote(value)}")
        else:
            environment.up() if arguments.command == "up" else environment.down()
    except StepError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class Environment(Protocol):
    """What can be brought up and down."""

    def up(self) -> None:
        """Bring everything up, to an answer of the model."""

    def down(self) -> None:
        """Destroy everything."""

    def env(self) -> dict[str, str]:
        """Return what ``pulumi`` and ``kubectl`` need in their environment."""
        ...


def _environment(name: str, paths: Paths, report: Report) -> Environment:
    """Return the environment of that name, in the cloud that its settings say.

    Raises:
        DeployError: there is no such environment, or it is in a cloud that isn't built.
    """
    if name == "local":
        return Local(paths, os.environ, report)
    file = REPOSITORY / f"stacks/Pulumi.foundation.{name}.yaml"
    if not file.exists():
        there = {it.stem.partition("foundation.")[2] for it in file.parent.glob(_FOUNDATIONS)}
        known = ", ".join(sorted({"local", *there}))
        raise DeployError(STEP, f"ENV={name}: there is no {file}. Known: {known}")
    cloud = StackSettings.read(file).given.get("cloud")
    if cloud != "aws":
        raise DeployError(
            STEP, f"{file}: llm-platform:cloud is {cloud!r}; make knows ENV=local and 'aws'"
        )
    from .aws import Aws  # noqa: PLC0415 - only clouds need their clients and providers

    return Aws(name, paths, os.environ, report)


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
