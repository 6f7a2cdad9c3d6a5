"""A process is only taken for ours, and ended, when it surely is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import StepError
from lab.processes import (
    Identity,
    Process,
    current_identity,
    identity_of,
    is_running,
    kill,
    shims_of,
    wait_until,
)

STAT = (
    "4711 (a (strange) name) S 1 4711 4711 0 -1 4194560 2101 0 5 0 12 7 0 0 20 0 9 0 "
    "98765 1270000000 9000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0"
)
BOOT = "3f0e7c1a-0000-4000-8000-000000000001"
IDENTITY = Identity(4711, 98765, BOOT)


def test_a_record_is_read_whatever_the_program_is_called() -> None:
    assert identity_of(f"{STAT}\n{BOOT}\n") == IDENTITY


@pytest.mark.parametrize("record", ["", "4711", f"{STAT[:40]}\n{BOOT}", "garbage (x) y"])
def test_half_a_record_names_nobody(record: str) -> None:
    assert identity_of(record) is None


def test_the_same_number_start_and_boot_is_the_same_process() -> None:
    assert is_running(IDENTITY, STAT, BOOT)


def test_a_process_that_got_the_number_later_is_another_one() -> None:
    assert not is_running(IDENTITY, STAT.replace("98765", "98766"), BOOT)


def test_a_process_after_a_reboot_is_another_one() -> None:
    assert not is_running(IDENTITY, STAT, BOOT.replace("1", "2"))


def test_a_dead_process_does_not_run() -> None:
    assert not is_running(IDENTITY, "", BOOT)
    assert not is_running(IDENTITY, STAT.replace(" S 1 ", " Z 1 "), BOOT)


@pytest.fixture
def process(tmp_path: Path):
    process = Process("demo", tmp_path / "records" / "demo", tmp_path / "demo.log")
    yield process
    process.stop()


def test_a_started_process_leads_its_own_session_and_is_stopped(process: Process) -> None:
    process.start(["/bin/sh", "-c", "echo hello; exec sleep 1000"], {"PATH": "/usr/bin:/bin"})
    pid = process.pid
    assert pid is not None
    assert os.getsid(pid) == pid != os.getsid(0)
    assert wait_until(lambda: process.log.read_text() == "hello\n", 10)
    process.stop()
    assert process.pid is None
    assert current_identity(pid) is None


def test_starting_a_running_process_does_nothing(process: Process) -> None:
    process.start(["sleep", "1000"], {"PATH": "/usr/bin:/bin"})
    pid = process.pid
    process.start(["sleep", "1000"], {"PATH": "/usr/bin:/bin"})
    assert process.pid == pid


def test_a_process_that_ignores_the_signal_is_killed_with_its_children(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.processes._STOP_SECONDS", 0.3)
    script = "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"
    process.start(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"})
    assert wait_until(lambda: process.log.read_text().endswith("\n"), 10)
    child = current_identity(int(process.log.read_text()))
    assert child is not None
    process.stop()
    assert process.pid is None
    assert wait_until(lambda: not _runs(child), 10)


def _runs(identity: Identity) -> bool:
    try:
        stat = Path(f"/proc/{identity.pid}/stat").read_text()
    except OSError:
        return False
    return is_running(identity, stat, identity.boot_id)


def test_a_record_of_an_old_process_protects_who_has_its_number_now(process: Process) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    try:
        stat = Path(f"/proc/{bystander.pid}/stat").read_text()
        fields = stat.split()
        fields[21] = str(int(fields[21]) - 1)
        process.record.parent.mkdir(parents=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        process.record.write_text(f"{' '.join(fields)}\n{boot}")
        recorded = process.identity
        assert recorded is not None
        assert recorded.pid == bystander.pid
        assert process.pid is None
        process.stop()
        kill([recorded])
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_program_that_cannot_start_is_an_error_with_its_log(process: Process) -> None:
    process.start(["/no/such/program"], {"PATH": "/usr/bin:/bin"})
    assert wait_until(lambda: process.pid is None, 10)
    assert "/no/such/program" in process.log.read_text()


def test_a_launcher_that_cannot_write_its_record_is_an_error(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.processes._LAUNCHER", "exit 1")
    with pytest.raises(StepError, match="starting demo"):
        process.start(["true"], {"PATH": "/usr/bin:/bin"})


def test_only_shims_of_our_containerd_are_ours() -> None:
    ours, theirs = Path("/run/llm-platform/containerd.sock"), "/run/containerd/containerd.sock"
    shim = "/usr/bin/containerd-shim-runc-v2"
    processes = [
        (1, [shim, "-namespace", "k8s.io", "-id", "a", "-address", str(ours)]),
        (2, [shim, "-namespace", "k8s.io", "-id", "b", "-address", theirs]),
        (3, ["grep", "-address", str(ours)]),
        (4, [""]),
        (5, [shim, str(ours)]),
    ]
    assert shims_of(ours, processes) == [1]
