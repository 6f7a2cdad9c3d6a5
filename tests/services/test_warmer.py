import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from service_harness import ROOT, free_port

from services.warmer.address import WeightsAddress
from services.warmer.errors import BadAddress, BadManifest
from services.warmer.manifest import Manifest

VERSION = "s3://weights/gemma/2026-11-03/"


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    server = ThreadedMotoServer(port=free_port(), ip_address="127.0.0.1", verbose=False)
    server.start()
    yield f"http://127.0.0.1:{server._port}"
    server.stop()


@pytest.fixture
def s3(s3_url: str) -> Iterator[Any]:
    client = boto3.client(
        "s3",
        endpoint_url=s3_url,
        aws_access_key_id="k",
        aws_secret_access_key="s",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="weights")
    with contextlib.closing(client):
        yield from _emptied(client)


def _emptied(client: Any) -> Iterator[Any]:
    yield client
    for item in client.list_objects_v2(Bucket="weights").get("Contents", []):
        client.delete_object(Bucket="weights", Key=item["Key"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "model.gguf").write_bytes(os.urandom(3 * 2**20 + 17))
    (source / "sub" / "config.json").write_text("{}")
    (source / "empty").touch()
    (source / ".cache").touch()
    return source


def environment(url: str, **extra: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
        "LLM_PLATFORM_RANGE_BYTES": str(2**20),
        "LLM_PLATFORM_PROGRESS_SECONDS": "0",
        **extra,
    }


def warmer(url: str, *arguments: Any, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.warmer", *map(str, arguments)],
        env=environment(url, **extra),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def load(url: str, target: Path, source: str = VERSION, **extra: str) -> Any:
    where = {"LLM_PLATFORM_WEIGHTS_SOURCE": source, "LLM_PLATFORM_WEIGHTS_DIR": str(target)}
    return warmer(url, "load", **where, **extra)


def put_manifest(s3: Any, files: list[dict[str, Any]]) -> None:
    body = json.dumps({"files": files}).encode()
    s3.put_object(Bucket="weights", Key="gemma/2026-11-03/manifest.json", Body=body)


def entry(path: str, content: bytes, **fields: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path, "size": len(content), "sha256": digest, **fields}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith(".") and file.name != "READY"
    }


def test_what_was_published_is_loaded_and_ready(
    s3: Any, s3_url: str, folder: Path, tmp_path: Path
) -> None:
    published = warmer(s3_url, "publish", folder, VERSION)
    assert published.returncode == 0, published.stdout
    keys = {item["Key"] for item in s3.list_objects_v2(Bucket="weights")["Contents"]}
    files = ("model.gguf", "sub/config.json", "empty", "manifest.json")
    assert keys == {f"gemma/2026-11-03/{name}" for name in files}
    target = tmp_path / "target"
    loaded = load(s3_url, target)
    assert loaded.returncode == 0, loaded.stdout
    assert '"percent": 100' in loaded.stdout
    assert contents(target) == contents(folder)
    assert (target / "READY").is_file()
    assert not (target / ".partial").exists()
    assert "there already" in load(s3_url, target).stdout
    assert "published already" in warmer(s3_url, "publish", folder, VERSION).stdout


def test_a_published_version_never_changes(s3: Any, s3_url: str, folder: Path) -> None:
    assert warmer(s3_url, "publish", folder, VERSION).returncode == 0
    (folder / "model.gguf").write_bytes(b"other")
    again = warmer(s3_url, "publish", folder, VERSION)
    assert again.returncode == 1
    assert "new version" in again.stdout


def test_a_destination_without_a_version_is_refused_before_anything_else(
    folder: Path,
) -> None:
    destination = "s3://weights/gemma/latest/"
    nobody = f"http://127.0.0.1:{free_port()}"
    refused = warmer(nobody, "publish", folder, destination)
    assert refused.returncode == 1
    assert "isn't a version" in refused.stdout
    assert destination in refused.stdout


@pytest.mark.parametrize(
    "destination",
    [
        "s3://weights/gemma/LATEST",
        "s3://weights/gemma/main/",
        "s3://weights/gemma/",
        "s3://weights/",
        "s3://weights/../v1/",
        "s3://weights//v1",
        "/tmp/v1",
        "",
    ],
)
def test_an_address_without_a_version_is_none(destination: str) -> None:
    with pytest.raises(BadAddress) as caught:
        WeightsAddress.parse(destination)
    assert repr(destination) in str(caught.value)


@pytest.mark.parametrize("version", ["2026-11-03", "v2", "release-1.2.3"])
def test_an_address_with_a_version_is_read(version: str) -> None:
    address = WeightsAddress.parse(f"s3://my-weights/a/b/{version}/")
    assert (address.bucket, address.prefix) == ("my-weights", f"a/b/{version}")


def test_nothing_to_publish_is_said(s3: Any, s3_url: str, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert "has no files" in warmer(s3_url, "publish", tmp_path / "nothing", VERSION).stdout
    assert "isn't a folder" in warmer(s3_url, "publish", tmp_path / "missing", VERSION).stdout


@pytest.mark.parametrize(
    "path",
    ["../evil", "/etc/evil", "a/../../evil", "a//b", "./a", "a\\b", "READY", ".partial/x", ""],
)
def test_a_manifest_cannot_leave_its_directory(path: str) -> None:
    document = json.dumps({"files": [entry(path, b"evil")]}).encode()
    with pytest.raises(BadManifest, match=r"files\.0\.path"):
        Manifest.from_bytes(document, VERSION)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [{"path": "a", "size": -1, "sha256": "0" * 64}],
        [{"path": "a", "size": 1, "sha256": "x"}],
        [{"path": "a", "size": 1, "sha256": "0" * 64}] * 2,
        [
            {"path": "a", "size": 1, "sha256": "0" * 64},
            {"path": "a/b", "size": 1, "sha256": "0" * 64},
        ],
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(files: list[dict[str, Any]]) -> None:
    with pytest.raises(BadManifest, match=VERSION):
        Manifest.from_bytes(json.dumps({"files": files}).encode(), VERSION)


def test_a_load_with_an_evil_manifest_writes_nothing(s3: Any, s3_url: str, tmp_path: Path) -> None:
    put_manifest(s3, [entry("good", b"good"), entry("../evil", b"evil")])
    refused = load(s3_url, tmp_path / "inner" / "target")
    assert refused.returncode == 1
    assert "../evil" in refused.stdout
    assert contents(tmp_path) == {}


def test_an_address_without_a_manifest_says_so(s3: Any, s3_url: str, tmp_path: Path) -> None:
    assert "publish the weights first" in load(s3_url, tmp_path / "t").stdout


@pytest.mark.parametrize("stored", [b"corrupted!", b"short", b"much longer than it should be"])
def test_wrong_bytes_never_become_ready(
    s3: Any, s3_url: str, tmp_path: Path, stored: bytes
) -> None:
    put_manifest(s3, [entry("f", b"the-truth!")])
    s3.put_object(Bucket="weights", Key="gemma/2026-11-03/f", Body=stored)
    target = tmp_path / "t"
    assert load(s3_url, target).returncode == 1
    assert not (target / "READY").exists()
    assert not (target / "f").exists()
    s3.put_object(Bucket="weights", Key="gemma/2026-11-03/f", Body=b"the-truth!")
    assert load(s3_url, target).returncode == 0
    assert (target / "f").read_bytes() == b"the-truth!"


def test_a_killed_load_goes_on_where_it_was(
    s3: Any, s3_url: str, folder: Path, tmp_path: Path
) -> None:
    (folder / "model.gguf").write_bytes(os.urandom(32 * 2**20))
    assert warmer(s3_url, "publish", folder, VERSION).returncode == 0
    target = tmp_path / "t"
    where = {"LLM_PLATFORM_WEIGHTS_SOURCE": VERSION, "LLM_PLATFORM_WEIGHTS_DIR": str(target)}
    slow = environment(s3_url, **where, LLM_PLATFORM_TRANSFERS="1")
    process = subprocess.Popen(
        [sys.executable, "-m", "services.warmer", "load"], env=slow, cwd=ROOT
    )
    deadline = time.monotonic() + 30
    while len(list(target.rglob("done/*/*"))) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (target / "READY").exists()
    before = len(list(target.rglob("done/*/*")))
    assert before < 32
    again = load(s3_url, target)
    first = next(json.loads(line) for line in again.stdout.splitlines() if "percent" in line)
    assert first["done_bytes"] >= before * 2**20
    assert contents(target) == contents(folder)


def test_a_changed_file_is_brought_again(
    s3: Any, s3_url: str, folder: Path, tmp_path: Path
) -> None:
    assert warmer(s3_url, "publish", folder, VERSION).returncode == 0
    target = tmp_path / "t"
    assert load(s3_url, target).returncode == 0
    (target / "sub" / "config.json").write_text("longer than before")
    assert load(s3_url, target).returncode == 0
    assert contents(target) == contents(folder)


def test_a_bucket_is_created_once(s3: Any, s3_url: str) -> None:
    assert "bucket created" in warmer(s3_url, "bucket", "another").stdout
    assert "bucket is there" in warmer(s3_url, "bucket", "another").stdout


def test_a_server_that_is_away_is_waited_for_and_then_told() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    failed = warmer(nobody, "bucket", "b", LLM_PLATFORM_WAIT_SECONDS="3")
    assert failed.returncode == 1
    assert "waiting for the bucket's server" in failed.stdout
    assert "no answer within 3 s" in failed.stdout
