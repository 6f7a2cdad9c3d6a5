"""Certificates, images, packages, commands, DNS questions."""

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from lab import commands, dns, oci, packages, pki
from lab.errors import StepError
from lab.pki import Certificate


def test_a_certificate_names_its_groups_and_its_user() -> None:
    assert Certificate("a", "me", ["system:masters"]).subject == "/O=system:masters/CN=me"


def test_only_servers_have_names() -> None:
    server = Certificate("s", "s", usage="serverAuth", server_names=("DNS:a", "IP:10.0.0.1"))
    assert "subjectAltName = DNS:a,IP:10.0.0.1" in pki.extensions(server)
    assert "subjectAltName" not in pki.extensions(Certificate("c", "c"))


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_every_certificate_is_signed_by_its_authority_for_its_use(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    pki.ensure(folder)
    for certificate in pki.CERTIFICATES:
        purpose = "sslserver" if "server" in certificate.usage else "sslclient"
        authority = folder / f"{certificate.authority}.crt"
        verified = subprocess.run(
            ["openssl", "verify", "-CAfile", str(authority), "-purpose", purpose,
             str(folder / f"{certificate.name}.crt")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert verified.returncode == 0, verified.stderr
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.key")} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["pki"]

    config = json.loads(pki.kubeconfig(folder, "admin", "lab", "https://10.88.0.1:6443"))
    assert config["current-context"] == "lab"
    assert config["clusters"][0]["cluster"]["server"] == "https://10.88.0.1:6443"


def test_an_image_of_one_binary_describes_its_layer(tmp_path: Path) -> None:
    binary = tmp_path / "program"
    binary.write_bytes(b"\x7fELF")
    oci.write_archive(tmp_path / "image.tar", binary)
    with tarfile.open(tmp_path / "image.tar") as archive:
        members = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        contents = {name: file.read() for name, file in members.items() if file}
    config = json.loads(contents["config.json"])
    assert config["config"] == {"Entrypoint": ["/program"], "User": "65532:65532"}
    assert json.loads(contents["manifest.json"])[0]["Layers"] == ["layer.tar"]
    (tmp_path / "layer.tar").write_bytes(contents["layer.tar"])
    with tarfile.open(tmp_path / "layer.tar") as layer:
        entry = layer.getmember("program")
        assert entry.mode == 0o755
        assert config["rootfs"]["diff_ids"] == [_digest(contents["layer.tar"])]


def _digest(content: bytes) -> str:
    import hashlib

    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_the_same_binary_makes_the_same_layer(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for binary in (first, second):
        binary.write_bytes(b"same")
    second.chmod(0o700)
    assert oci.layer({"/x": first}) == oci.layer({"/x": second})


def test_missing_packages_are_named_by_package_not_by_program(tmp_path: Path) -> None:
    everything_but = {"ip", "skopeo"}
    absent = packages.missing(lambda program: program not in everything_but, (tmp_path,))
    assert absent == ["skopeo", "iproute2", "containernetworking-plugins"]
    (tmp_path / "bridge").touch()
    assert packages.missing(lambda _: True, (tmp_path,)) == []


def test_a_failed_command_says_what_it_was_for_and_why() -> None:
    with pytest.raises(StepError, match="making tea failed: no water"):
        commands.run("making tea", ["/bin/sh", "-c", "echo no water >&2; exit 3"])
    with pytest.raises(StepError, match="making tea failed: cannot run /no/kettle"):
        commands.run("making tea", ["/no/kettle"])


def test_a_file_appears_whole_with_its_mode(tmp_path: Path) -> None:
    path = commands.write(tmp_path / "deep" / "file", "secret", mode=0o600)
    assert path.read_text() == "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_a_question_is_written_as_the_standard_says() -> None:
    packet = dns.query("a.bc")
    assert packet[12:] == b"\x01a\x02bc\x00\x00\x01\x00\x01"


@pytest.mark.parametrize(
    ("flags", "records", "expected"),
    [(0x8180, 1, True), (0x8183, 0, False), (0x8180, 0, False), (0x0100, 1, False)],
)
def test_only_a_good_answer_with_a_record_counts(flags: int, records: int, expected: bool) -> None:
    packet = dns.query("a")[:2] + flags.to_bytes(2) + b"\0\1" + records.to_bytes(2) + b"\0" * 4
    assert dns.is_answer(packet) is expected
    assert not dns.is_answer(packet[:5])


def test_a_lock_keeps_a_second_process_out_even_when_its_file_goes(tmp_path: Path) -> None:
    """Three takers in a row; the first removes the file, as `down` does at its end."""
    lock, order = tmp_path / "lock", tmp_path / "order"
    script = f"""
import sys, time
from pathlib import Path
from lab.commands import alone
lock, order = Path({str(lock)!r}), Path({str(order)!r})
with alone(lock, lambda line: print(line, flush=True), "busy"):
    with order.open("a") as file:
        file.write("in ")
        file.flush()
        print("has it", flush=True)
        sys.stdin.readline()
        lock.unlink()
        file.write("out ")
"""
    takers = [_taker(script) for _ in range(2)]
    said = [taker.stdout.readline().strip() for taker in takers if taker.stdout]
    assert sorted(said) == ["busy", "has it"]
    holder, waiter = takers if said[0] == "has it" else reversed(takers)
    holder.communicate("go\n")
    assert waiter.stdout
    assert waiter.stdout.readline().strip() == "has it"
    third = _taker(script)
    assert third.stdout
    assert third.stdout.readline().strip() == "busy"
    waiter.communicate("go\n")
    assert third.stdout.readline().strip() == "has it"
    third.communicate("go\n")
    assert order.read_text() == "in out " * 3


def _taker(script: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
