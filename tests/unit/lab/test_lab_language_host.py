"""The stand-in language host, asked over gRPC as the engine asks."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from lab.toolchain import LANGUAGE_HOST


@pytest.fixture
def host() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [str(LANGUAGE_HOST / "pulumi-language-python"), "127.0.0.1:1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def engine(host: "subprocess.Popen[str]") -> Iterator[language_pb2_grpc.LanguageRuntimeStub]:
    assert host.stdout
    with grpc.insecure_channel(f"127.0.0.1:{int(host.stdout.readline())}") as channel:
        yield language_pb2_grpc.LanguageRuntimeStub(channel)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_on_a_signal(host: "subprocess.Popen[str]", number: signal.Signals) -> None:
    assert host.stdout
    assert host.stdout.readline().strip().isdigit()
    host.send_signal(number)
    output, errors = host.communicate(timeout=30)
    assert (host.returncode, output, errors) == (0, "", "")


def test_it_asks_for_no_plugins(engine: language_pb2_grpc.LanguageRuntimeStub) -> None:
    answer = engine.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest())
    assert list(answer.packages) == []


def test_it_lists_what_programs_can_import(
    engine: language_pb2_grpc.LanguageRuntimeStub,
) -> None:
    answer = engine.GetProgramDependencies(language_pb2.GetProgramDependenciesRequest())
    assert "pulumi" in {each.name for each in answer.dependencies}


def test_a_plugins_output_and_exit_code_are_streamed(
    engine: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    (tmp_path / "__main__.py").write_text(
        "import os, sys\n"
        "print('out', sys.argv[1:], os.environ['GREETING'])\n"
        "print('err', file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    request = language_pb2.RunPluginRequest(
        args=["a", "b c"],
        env=["GREETING=x=y"],
        info=language_pb2.ProgramInfo(program_directory=str(tmp_path), entry_point="."),
    )
    answers = list(engine.RunPlugin(request))
    assert b"".join(each.stdout for each in answers) == b"out ['a', 'b c'] x=y\n"
    assert b"".join(each.stderr for each in answers) == b"err\n"
    assert answers[-1].exitcode == 7


def test_a_plugin_that_is_no_longer_wanted_is_ended(
    engine: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    (tmp_path / "__main__.py").write_text(
        "import signal, sys, time\n"
        "from pathlib import Path\n"
        f"def end(*_): Path({str(ended)!r}).touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready')\n"
        "time.sleep(1000)\n"
    )
    info = language_pb2.ProgramInfo(program_directory=str(tmp_path))
    call = engine.RunPlugin(language_pb2.RunPluginRequest(info=info))
    assert next(iter(call)).stdout.startswith(b"ready")
    call.cancel()
    from lab.processes import wait_until

    assert wait_until(ended.exists, 30)


def test_a_program_without_an_engine_fails_with_its_exit_code(
    engine: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path
) -> None:
    (tmp_path / "__main__.py").write_text("")
    request = language_pb2.RunRequest(
        project="p", stack="s", parallel=1, monitor_address="127.0.0.1:1",
        info=language_pb2.ProgramInfo(program_directory=str(tmp_path), entry_point="."),
    )  # fmt: skip
    answer = engine.Run(request)
    assert answer.error or answer.bail


def test_the_interpreter_is_the_virtual_environment_that_the_project_names(
    tmp_path: Path,
) -> None:
    from lab.language_host.host import interpreter_of

    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    info = language_pb2.ProgramInfo(root_directory=str(tmp_path))
    info.options.update({"virtualenv": ".venv"})
    assert interpreter_of(info) == str(python)
    info.options.update({"virtualenv": "elsewhere"})
    assert interpreter_of(info) != str(tmp_path / "elsewhere" / "bin" / "python")
