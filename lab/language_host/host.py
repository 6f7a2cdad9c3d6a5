"""A language host: the small server through which Pulumi's engine runs Python programs.

The engine starts it with its own address as the last argument, reads a port from the first
line of its output, and asks it over gRPC to run the program, or a plugin written in Python.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

VERSION = "3.276.0"
# The program has shown its error already: the engine should add nothing to it.
SHOWN_ERROR_EXIT_CODE = 32
_RUNNER = Path(__file__).with_name("run_program.py")
_MESSAGE_LIMIT = 400 * 1024 * 1024


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Answers the engine's calls.

    Args:
        engine: The engine's address, where programs log to.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._children: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """End what runs."""
        for child in list(self._children):
            child.terminate()

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Take the engine's address, which may come by call instead of by argument."""
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Say which version this is."""
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Ask for no plugin: those on PATH are used."""
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Ask for no package: the plugins on PATH are used."""
        return language_pb2.GetRequiredPackagesResponse()

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        """Install nothing: the project's set-up has made the virtual environment."""
        yield language_pb2.InstallDependenciesResponse()

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:  # noqa: N802
        """List what is installed in the virtual environment."""
        found = [
            language_pb2.DependencyInfo(name=each.metadata["Name"], version=each.version)
            for each in distributions()
        ]
        return language_pb2.GetProgramDependenciesResponse(dependencies=found)

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Say which Python runs programs."""
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        """End what runs."""
        self.stop()
        return Empty()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run a Pulumi program to its end; its output goes where ours goes."""
        settings = {
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization,
            "parallel": request.parallel,
            "dry_run": request.dryRun,
            "monitor": request.monitor_address,
            "engine": self._engine,
            "root_directory": request.info.root_directory,
        }
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        program = Path(request.info.program_directory, request.info.entry_point)
        child = subprocess.Popen(
            [interpreter_of(request.info), str(_RUNNER), json.dumps(settings), str(program),
             *request.args],
            cwd=request.pwd or request.info.program_directory,
            env=environment,
        )  # fmt: skip
        code = self._wait(child, context)
        if code == 0:
            return language_pb2.RunResponse()
        if code == SHOWN_ERROR_EXIT_CODE:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with exit code {code}")

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        """Run a plugin written in Python, and stream what it prints."""
        child = subprocess.Popen(
            [interpreter_of(request.info), "-u",
             request.info.program_directory or request.program, *request.args],
            cwd=request.pwd or None,
            env=environment_of(request.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        chunks: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
        readers = [
            threading.Thread(target=_read, args=(name, pipe, chunks), daemon=True)
            for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr))
        ]
        waiter = threading.Thread(
            target=_finish, args=(lambda: self._wait(child, context), readers, chunks), daemon=True
        )
        for thread in (*readers, waiter):
            thread.start()
        for name, content in iter(chunks.get, ("end", b"")):
            if name == "exit":
                yield language_pb2.RunPluginResponse(exitcode=int(content))
            elif name == "stdout":
                yield language_pb2.RunPluginResponse(stdout=content)
            else:
                yield language_pb2.RunPluginResponse(stderr=content)

    def _wait(self, child: subprocess.Popen[bytes], context: Any) -> int:
        """Wait for the child; it ends with the call when the engine gives that up."""
        self._children.add(child)
        try:
            context.add_callback(child.terminate)
            return child.wait()
        finally:
            self._children.discard(child)


def interpreter_of(info: Any) -> str:
    """Choose the Python that a program asks for by the option `virtualenv`; else our own."""
    chosen = dict(info.options).get("virtualenv", "")
    python = Path(info.root_directory, str(chosen), "bin", "python")
    return str(python) if chosen and python.exists() else sys.executable


def environment_of(entries: list[str]) -> Mapping[str, str] | None:
    """Read `NAME=value` entries; none means our own environment."""
    pairs = (entry.partition("=") for entry in entries)
    return {name: value for name, _, value in pairs} or None


def _read(name: str, pipe: IO[bytes], chunks: SimpleQueue[tuple[str, bytes]]) -> None:
    for content in iter(lambda: pipe.read1(65536), b""):  # pyright: ignore[reportAttributeAccessIssue]
        chunks.put((name, content))


def _finish(wait: Any, readers: list[threading.Thread], chunks: Any) -> None:
    code = wait()
    for reader in readers:
        reader.join()
    chunks.put(("exit", str(code).encode()))
    chunks.put(("end", b""))


def main() -> None:
    """Serve until a signal comes."""
    arguments = [word for word in sys.argv[1:] if not word.startswith("-")]
    host = LanguageHost(arguments[-1] if arguments else "")
    options = [
        ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
        ("grpc.max_send_message_length", _MESSAGE_LIMIT),
    ]
    server = grpc.server(ThreadPoolExecutor(max_workers=16), options=options)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    print(port, flush=True)
    ended.wait()
    host.stop()
    server.stop(grace=0.5).wait()


if __name__ == "__main__":
    main()
