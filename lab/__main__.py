"""`python -m lab`: the lab's commands."""

import argparse
import shlex
import sys

from . import cluster, toolchain
from .errors import StepError
from .progress import to_terminal


def main() -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=sys.modules["lab"].__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the cluster, or repair it")
    commands.add_parser("down", help="remove the cluster and everything in it")
    commands.add_parser("status", help="show each part, its process, its health and its log")
    commands.add_parser("env", help='print what `eval "$(python -m lab env)"` sets')
    tools = commands.add_parser("toolchain", help="build what is missing of the tool chain")
    tools.add_argument("tools", nargs="*", help="only these", choices=[*toolchain.TOOLS, []])
    tools.add_argument("--list", action="store_true", help="only show where each comes from")
    arguments = parser.parse_args()
    try:
        return _COMMANDS[arguments.command](arguments)
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _up(_: argparse.Namespace) -> int:
    cluster.up(to_terminal())
    return 0


def _down(_: argparse.Namespace) -> int:
    cluster.down(to_terminal())
    return 0


def _status(_: argparse.Namespace) -> int:
    parts = cluster.status()
    if not parts:
        print("there is no lab")
    for part in parts:
        health = "healthy" if part.healthy else "NOT HEALTHY"
        print(f"{part.name:26} {part.pid or '-':>8} {health:12} {part.log}")
    return 0 if parts and all(part.healthy for part in parts) else 1


def _env(_: argparse.Namespace) -> int:
    for name, value in cluster.exports().items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _toolchain(arguments: argparse.Namespace) -> int:
    names = arguments.tools or list(toolchain.TOOLS)
    if not arguments.list:
        toolchain.ensure(names, to_terminal())
    print("\n".join(toolchain.describe(names)))
    return 0


_COMMANDS = {"up": _up, "down": _down, "status": _status, "env": _env, "toolchain": _toolchain}


if __name__ == "__main__":
    sys.exit(main())
