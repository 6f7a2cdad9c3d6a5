"""An environment in AWS is brought up in order, and what would fail late is refused early."""

import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import certifi
import pytest
import yaml
from moto.server import ThreadedMotoServer

from deploy import aws, aws_ask, aws_checks, certificates, session, weights
from deploy.__main__ import _environment
from deploy.aws import Aws
from deploy.aws_environment import AwsEnvironment
from deploy.engine import Engine
from deploy.errors import DeployError
from deploy.images import Recipe, publishing
from deploy.images.recipes import Code
from deploy.local import Local
from deploy.paths import Paths
from deploy.settings import StackSettings
from stacks import foundation, platform
from stacks.reading import parse

ACCOUNT, REGION = "123456789012", "eu-west-1"
BUCKET = "dev-aws-weights-1a2b3c4"
REGISTRY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/dev-aws"
DIGEST = "sha256:" + "7" * 64
OWN_IMAGE = f"registry.example/services@{DIGEST}"
WHERE = {"id": ACCOUNT, "region": REGION}
TAGS = {"owner": "us", "cost_center": "ours"}
FOUNDATION: dict[str, Any] = {
    "cloud": "aws",
    "account": WHERE,
    "tags": TAGS,
    "network": {"zones": ["eu-west-1a", "eu-west-1b"]},
    "cluster": {"deployer_arn": f"arn:aws:iam::{ACCOUNT}:role/deployer"},
}
PLATFORM: dict[str, Any] = {
    "cloud": "aws",
    "account": WHERE,
    "tags": TAGS,
    "cluster_name": "dev-aws",
    "gateway": {"domain": "llm.example.com", "clients": ["10.0.0.0/8"], "public": True},
    "addons": {"prometheus": {"source": "manifests", "image": f"prometheus@{DIGEST}"}},
}
URN = "urn:pulumi:foundation.dev-aws::llm-platform::aws:rds/cluster:Cluster::dev-aws-database"
SKOPEO = """#!{python}
import json, pathlib, shutil, sys
home = pathlib.Path("{folder}")
words = [word for word in sys.argv[1:] if not word.startswith("--")]
[login] = [word.partition("=")[2] for word in sys.argv if "authfile=" in word]
file = pathlib.Path(login)
note = dict(argv=sys.argv[1:], mode=file.stat().st_mode & 0o777, login=json.loads(file.read_text()))
with (home / "skopeo.jsonl").open("a") as log:
    log.write(json.dumps(note) + chr(10))
tag = home / ("tag-" + words[-1].rpartition("/")[2])
if words[0] == "inspect":
    sys.exit("manifest unknown") if not tag.exists() else sys.stdout.write(tag.read_text())
else:
    if tag.exists():
        sys.exit("tag invalid: it cannot be overwritten because the repository is immutable")
    layout = pathlib.Path(words[1].split(":")[1])
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    shutil.copy(layout / "blobs/sha256" / entry["digest"].split(":")[1], tag)
"""


@contextmanager
def serving(answer: Callable[[str, bytes], tuple[int, bytes]]) -> Iterator[str]:
    """A server of our own, which is asked by path and body."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answer(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - the names that the class is asked for

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class FakeEngine:
    """An engine that writes down what it is told, and with which settings."""

    environ: dict[str, str]
    where: str = "s3://acme-pulumi-state?region=eu-west-1"
    known: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    guarded: dict[str, list[str]] = field(default_factory=dict)
    providers: dict[str, str] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    fetches_plugins: bool = True
    fails_at: str = ""

    def backend(self) -> str:
        return self.where

    def stacks(self) -> list[str]:
        return self.known

    def has_plugin(self, name: str) -> bool:
        return name in self.plugins

    def select(self, stack: str, secrets_provider: str = "") -> None:
        self.providers[stack] = secrets_provider
        self.known = [*self.known, stack]

    def up(self, stack: str, settings: Path) -> None:
        self.done.append(f"up {stack}")
        self.settings[stack] = yaml.safe_load(settings.read_text())
        if stack == self.fails_at:
            raise KeyboardInterrupt

    def outputs(self, stack: str) -> dict[str, Any]:
        return self.results.get(stack, {})

    def protected(self, stack: str) -> list[str]:
        return self.guarded.get(stack, [])

    def destroy_known(self, *stacks: str) -> None:
        self.done += [f"destroy {stack}" for stack in stacks if stack in self.known]

    def given(self, stack: str) -> dict[str, Any]:
        """What the program is given, by names without the project's."""
        return {k.partition(":")[2]: v for k, v in self.settings[stack]["config"].items()}


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        if path == "/v1/models":
            return 200, b'{"data": [{"id": "summarizer"}]}'
        said = json.loads(body)["model"] + " says Paris."
        return 200, json.dumps({"choices": [{"message": {"content": said}}]}).encode()

    with serving(answer) as address:
        yield address


@pytest.fixture(scope="module")
def truststore() -> Iterator[str]:
    end = "-----END CERTIFICATE-----\n"
    pem = end.join(certifi.contents().split(end)[:2]) + end
    answers = {
        "/eu-west-1/eu-west-1-bundle.pem": pem.encode(),
        "/eu-west-2/eu-west-2-bundle.pem": b"<html>",
    }
    with serving(
        lambda path, _: (200, answers[path]) if path in answers else (403, b"")
    ) as address:
        yield address


@dataclass
class World:
    """Everything around ``make up``: settings, programs, AWS, and the engine."""

    folder: Path
    engine: FakeEngine
    said: list[str] = field(default_factory=list)

    @property
    def stacks(self) -> Path:
        return self.folder / "stacks"

    @property
    def paths(self) -> Paths:
        return Paths(cache=self.folder / "cache", state=self.folder / "state")

    @property
    def aws(self) -> Aws:
        return Aws("dev-aws", self.paths, dict(os.environ), self.said.append, self.stacks)

    def write(self, layer: str, settings: dict[str, Any], **more: Any) -> Path:
        config = {f"llm-platform:{name}": value for name, value in settings.items()}
        file = self.stacks / f"Pulumi.{layer}.dev-aws.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump({"config": config, **more}, sort_keys=False))
        return file

    def program(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def skopeo(self) -> list[dict[str, Any]]:
        """What skopeo was called with."""
        log = self.folder / "skopeo.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def pushed(self) -> list[str]:
        return [call["argv"][-1] for call in self.skopeo() if "copy" in call["argv"]]

    def refusal(self) -> str:
        """Why it isn't brought up; nothing has been made then."""
        with pytest.raises(DeployError) as refused:
            self.aws.up()
        assert self.engine.done == []
        return str(refused.value)


@pytest.fixture
def world(
    tmp_path: Path, moto: str, gateway: str, truststore: str, monkeypatch: pytest.MonkeyPatch
) -> World:
    bin_path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for name, value in {
        "PATH": bin_path,
        "XDG_STATE_HOME": str(tmp_path),
        "AWS_ENDPOINT_URL": moto,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(name, value)
    engine = FakeEngine({"PATH": bin_path}, known=["foundation.dev-aws", "platform.dev-aws"])
    engine.results = {
        "foundation.dev-aws": {
            "cluster_name": "dev-aws",
            # All that is asked of it is to take connections.
            "cluster_endpoint": gateway,
            "registry": REGISTRY,
            "weights_bucket": BUCKET,
            "kubeconfig": "{}",
        },
        "platform.dev-aws": {"gateway_address": gateway, "admin_key": "lp-top-secret"},
    }
    made = World(tmp_path, engine)
    made.write("foundation", FOUNDATION)
    made.write("platform", PLATFORM)
    made.program("aws", "#!/bin/sh\necho aws-cli/2.20.0\n")
    made.program("mmdebstrap", "#!/bin/sh\nexit 1\n")
    made.program("skopeo", SKOPEO.format(python=sys.executable, folder=tmp_path))
    # So small that they are made at once, but made as the real ones are.
    recipes = {
        name: Recipe((Code(("deploy/__init__.py",)),), {"OF": name})
        for name in ("services", "llamacpp")
    }
    monkeypatch.setattr(publishing, "RECIPES", recipes)
    monkeypatch.setattr(aws_checks, "architecture", lambda: "amd64")
    monkeypatch.setattr(certificates, "_BASES", {"aws": truststore})
    for room in (aws, aws_ask):
        monkeypatch.setattr(room, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(session, "open_cloud_engine", lambda *_: engine)
    # Its program takes a second to start: one test runs it.
    monkeypatch.setattr(aws, "publish_demo", lambda target, *_: f"s3://{target.bucket}/shared/g/1/")
    return made


def steps(said: list[str]) -> list[str]:
    return [line.split()[0] for line in said if "/" in line.split()[0] and line[0].isdigit()]


# Bringing up


def test_everything_is_made_in_order_up_to_an_answer(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.aws.up()
    assert steps(world.said) == [f"{number}/7" for number in range(1, 8)]
    assert world.engine.done == ["up foundation.dev-aws", "up platform.dev-aws"]
    shown = capsys.readouterr().out
    assert "gemma says Paris." in shown
    assert 'eval "$(make -s env ENV=dev-aws)"' in shown
    assert "pulumi stack output admin_key --show-secrets --stack platform.dev-aws" in shown


def test_the_platform_gets_the_images_by_digest_and_the_weights_that_were_published(
    world: World,
) -> None:
    world.aws.up()
    given = world.engine.given("platform.dev-aws")
    for name in ("services", "llamacpp"):
        assert given["images"][name].startswith(f"{REGISTRY}/{name}@sha256:")
    assert given["weights"]["gemma"].startswith(f"s3://{BUCKET}/shared/")
    # The program takes them as they are written.
    parse(platform.SETTINGS, given, "platform.dev-aws")


def test_the_foundation_gets_the_certificates_of_its_region(world: World) -> None:
    world.aws.up()
    given = world.engine.given("foundation.dev-aws")
    kept = world.paths.certificates / "eu-west-1-bundle.pem"
    assert given["database_ca_file"] == str(kept)
    assert kept.read_text().count("BEGIN CERTIFICATE") == 2
    parse(foundation.SETTINGS, given, "foundation.dev-aws")


def test_the_committed_settings_stay_as_they_are(world: World) -> None:
    before = {file: file.read_bytes() for file in world.stacks.iterdir()}
    world.aws.up()
    assert {file: file.read_bytes() for file in world.stacks.iterdir()} == before


def test_weights_lie_in_the_bucket_with_the_runner_s_own_credentials(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = world.folder / "model"
    model.mkdir()
    (model / weights._FILE).write_bytes(b"weights")
    monkeypatch.setattr(weights, "demo_model", lambda *_: model)
    monkeypatch.setattr(aws, "publish_demo", weights.publish_demo)
    s3 = boto3.client("s3", region_name=REGION)
    where: Any = {"LocationConstraint": REGION}
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    world.aws.up()
    source = world.engine.given("platform.dev-aws")["weights"]["gemma"]
    assert source.startswith(f"s3://{BUCKET}/shared/gemma-3-270m/")
    prefix = source.removeprefix(f"s3://{BUCKET}/")
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    s3.close()
    assert {it["Key"].removeprefix(prefix) for it in listed} == {weights._FILE, "manifest.json"}


def test_images_go_to_ecr_with_a_login_that_only_its_file_has(world: World) -> None:
    world.aws.up()
    assert len(world.pushed()) == 2
    (host,) = {host for call in world.skopeo() for host in call["login"]["auths"]}
    assert host == REGISTRY.partition("/")[0]
    (token,) = {call["login"]["auths"][host]["auth"] for call in world.skopeo()}
    assert {call["mode"] for call in world.skopeo()} == {0o600}
    everything = b"".join(it.read_bytes() for it in world.paths.state.rglob("*") if it.is_file())
    told = [*world.said, *(word for call in world.skopeo() for word in call["argv"])]
    assert token not in everything.decode() + "\n".join(told)


def test_the_login_goes_though_a_push_fails(world: World) -> None:
    world.program("skopeo", "#!/bin/sh\necho no space left >&2; exit 1\n")
    with pytest.raises(Exception, match="no space left"):
        world.aws.up()
    assert not list(world.paths.state.rglob("registry-login*"))
    assert world.engine.done == ["up foundation.dev-aws"]


def test_an_image_that_is_there_is_not_pushed_to_its_tag_again(world: World) -> None:
    # ECR refuses that, though it is the same image.
    world.aws.up()
    first = world.engine.given("platform.dev-aws")["images"]
    pushed = world.pushed()
    world.aws.up()
    assert world.pushed() == pushed
    assert world.engine.given("platform.dev-aws")["images"] == first


def test_what_the_settings_name_is_neither_made_nor_published(world: World) -> None:
    ca = world.folder / "own.pem"
    ca.write_text(certifi.contents())
    source = "s3://ours/gemma/2026-11-03/"
    world.write("foundation", {**FOUNDATION, "database_ca_file": str(ca)})
    own = {"images": {"services": OWN_IMAGE}, "weights": {"gemma": source}}
    world.write("platform", {**PLATFORM, **own})
    world.aws.up()
    assert [target.rpartition("/")[2].partition(":")[0] for target in world.pushed()] == [
        "llamacpp"
    ]
    given = world.engine.given("platform.dev-aws")
    assert given["images"]["services"] == OWN_IMAGE
    assert given["images"]["llamacpp"].startswith(REGISTRY)
    assert given["weights"] == {"gemma": source}
    assert world.engine.given("foundation.dev-aws")["database_ca_file"] == str(ca)
    assert not world.paths.certificates.exists()


def test_without_a_team_for_the_demo_there_is_none_and_the_models_are_asked_for(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write("platform", {**PLATFORM, "teams": [{"name": "search"}]})
    world.aws.up()
    assert "weights" not in world.engine.given("platform.dev-aws")
    assert "models: summarizer" in capsys.readouterr().out


def test_a_private_gateway_out_of_reach_is_said_and_nothing_fails(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    private = {"domain": "llm.example.com", "clients": ["10.0.0.0/8"]}
    world.write("platform", {**PLATFORM, "gateway": private})
    world.engine.results["platform.dev-aws"]["gateway_address"] = "http://127.0.0.1:9"
    world.aws.up()
    shown = capsys.readouterr().out
    assert "not from here" in shown
    assert "gateway   http://127.0.0.1:9" in shown
    assert "kubectl port-forward --namespace llm-platform service/gateway" in shown
    assert "curl http://127.0.0.1:8080/v1/chat/completions" in shown


def test_the_key_is_never_shown(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.aws.up()
    assert "lp-top-secret" not in capsys.readouterr().out + "\n".join(world.said)


def test_what_was_published_is_kept_when_the_platform_is_interrupted(world: World) -> None:
    world.engine.fails_at = "platform.dev-aws"
    with pytest.raises(KeyboardInterrupt):
        world.aws.up()
    folder = Path(world.aws.env()["LLM_PLATFORM_SETTINGS"])
    whole = yaml.safe_load((folder / "platform.yaml").read_text())["config"]
    assert set(whole["llm-platform:images"]) == {"services", "llamacpp"}


def test_another_cluster_than_the_foundation_s_is_refused_before_images_are_made(
    world: World,
) -> None:
    world.engine.results["foundation.dev-aws"]["cluster_name"] = "dev-2"
    with pytest.raises(DeployError, match=r"cluster_name.*'dev-aws'.*'dev-2'"):
        world.aws.up()
    assert world.pushed() == []


def test_an_api_out_of_reach_is_said_before_images_are_made(world: World) -> None:
    world.engine.results["foundation.dev-aws"]["cluster_endpoint"] = "https://127.0.0.1:9"
    with pytest.raises(
        DeployError, match=r"127\.0\.0\.1:9 takes no connection.*public_access_cidrs"
    ):
        world.aws.up()
    assert world.engine.done == ["up foundation.dev-aws"]
    assert world.pushed() == []


def test_new_stacks_are_made_with_the_key_that_their_file_names(world: World) -> None:
    world.engine.known = []
    key = "awskms://alias/acme-pulumi?region=eu-west-1"
    world.write("foundation", FOUNDATION, secretsprovider=key)
    world.write("platform", PLATFORM, secretsprovider=key)
    world.aws.up()
    assert world.engine.providers == {"foundation.dev-aws": key, "platform.dev-aws": key}
    assert world.engine.settings["platform.dev-aws"]["secretsprovider"] == key


# Refusals, before anything is made


def test_a_settings_file_that_is_missing_is_named(world: World) -> None:
    (world.stacks / "Pulumi.platform.dev-aws.yaml").unlink()
    assert "there is no " in (said := world.refusal())
    assert "Pulumi.platform.dev-aws.yaml" in said


@pytest.mark.parametrize(
    ("layer", "change", "message"),
    [
        ("foundation", {"cloud": "local"}, "cloud is 'local' and not 'aws'"),
        ("platform", {"cloud": "azure"}, "cloud is 'azure' and not 'aws'"),
        ("foundation", {"network": {"zones": ["eu-west-1a"]}}, "at least two"),
        ("platform", {"gateway": {"domain": "llm.example.com"}}, "gateway.clients"),
        ("platform", {"account": {**WHERE, "region": "us-east-1"}}, "llm-platform:account"),
        ("platform", {"name": "other"}, "llm-platform:name"),
        ("foundation", {"registry": {"repositories": ["llamacpp"]}}, "registry.repositories"),
        ("foundation", {"database_ca_file": "nowhere.pem"}, "database_ca_file"),
        (
            "platform",
            {"addons": {"prometheus": {"source": "manifests", "image": "p@sha256:" + "0" * 64}}},
            "addons.prometheus.image",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(
    world: World, layer: str, change: dict[str, Any], message: str
) -> None:
    usual = FOUNDATION if layer == "foundation" else PLATFORM
    world.write(layer, {**usual, **change})
    said = world.refusal()
    assert message in said
    assert f"Pulumi.{layer}.dev-aws.yaml" in said


def test_the_lab_s_state_is_no_place_for_a_cloud_s(world: World) -> None:
    world.engine.where = f"file://{world.paths.pulumi}/1a2b?metadata=skip"
    said = world.refusal()
    assert "that is the lab's" in said
    assert "export PULUMI_BACKEND_URL='s3://" in said


def test_somebody_who_said_no_place_for_state_is_told_how(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> str:
        raise DeployError("looking", "error: this command requires logging in")

    monkeypatch.setattr(world.engine, "backend", nowhere)
    said = world.refusal()
    assert "requires logging in" in said
    assert "export PULUMI_BACKEND_URL='s3://" in said
    assert "docs/aws.md" in said


def test_a_new_stack_needs_something_to_encrypt_its_secrets_with(world: World) -> None:
    world.engine.known = ["foundation.dev-aws"]
    said = world.refusal()
    assert "pulumi stack init platform.dev-aws --secrets-provider 'awskms://" in said


def test_a_passphrase_of_the_user_s_is_something_to_encrypt_with(world: World) -> None:
    world.engine.known = []
    world.engine.environ["PULUMI_CONFIG_PASSPHRASE_FILE"] = "passphrase"
    world.aws.up()
    assert world.engine.providers == {"foundation.dev-aws": "", "platform.dev-aws": ""}


def test_pulumi_cloud_needs_to_know_what_the_foundation_is_called_there(world: World) -> None:
    world.engine.where = "https://app.pulumi.com/ada"
    assert "ORGANIZATION/llm-platform/foundation.dev-aws" in world.refusal()


def test_a_provider_that_is_missing_and_not_fetched_is_named_with_its_command(
    world: World,
) -> None:
    world.engine.fetches_plugins = False
    assert "pulumi plugin install resource aws 7." in world.refusal()
    world.engine.plugins = {"aws"}
    world.aws.up()


def test_credentials_of_another_account_are_refused(world: World) -> None:
    other = {**WHERE, "id": "999999999999"}
    world.write("foundation", {**FOUNDATION, "account": other})
    world.write("platform", {**PLATFORM, "account": other})
    said = world.refusal()
    assert f"in account {ACCOUNT}" in said
    assert "999999999999" in said


def test_an_aws_cli_that_is_too_old_is_refused(world: World) -> None:
    world.program("aws", "#!/bin/sh\necho aws-cli/2.1.0\n")
    assert "EKS wants 2.12.3" in world.refusal()


def test_what_images_are_made_with_is_looked_for_before_the_foundation(world: World) -> None:
    (world.folder / "bin/mmdebstrap").unlink()
    world.engine.environ["PATH"] = str(world.folder / "bin")
    said = world.refusal()
    assert "mmdebstrap isn't on PATH" in said
    assert "llm-platform:images.services" in said


def test_images_of_another_kind_of_processor_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_checks, "architecture", lambda: "arm64")
    assert "arm64" in world.refusal()


# Certificates


def test_certificates_are_fetched_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.aws.up()
    monkeypatch.setattr(certificates, "_BASES", {"aws": "http://127.0.0.1:9"})
    world.aws.up()


@pytest.mark.parametrize(
    ("region", "why"), [("eu-west-2", "no certificates"), ("eu-west-3", "403")]
)
def test_what_is_no_certificate_is_not_kept(world: World, region: str, why: str) -> None:
    network = {"zones": [f"{region}a", f"{region}b"]}
    where = {**WHERE, "region": region}
    world.write("foundation", {**FOUNDATION, "account": where, "network": network})
    world.write("platform", {**PLATFORM, "account": where})
    said = world.refusal()
    assert why in said
    assert f"/{region}/{region}-bundle.pem" in said
    assert "llm-platform:database_ca_file" in said
    assert not list(world.paths.certificates.glob("*"))


@pytest.mark.parametrize(
    ("partition", "region", "url"),
    [
        (
            "aws",
            "eu-west-1",
            "https://truststore.pki.rds.amazonaws.com/eu-west-1/eu-west-1-bundle.pem",
        ),
        (
            "aws-us-gov",
            "us-gov-east-1",
            "https://truststore.pki.us-gov-west-1.rds.amazonaws.com/us-gov-east-1/us-gov-east-1-bundle.pem",
        ),
        (
            "aws-cn",
            "cn-northwest-1",
            "https://rds-truststore.s3.cn-north-1.amazonaws.com.cn/cn-northwest-1/cn-northwest-1-bundle.pem",
        ),
    ],
)
def test_each_part_of_aws_publishes_its_own(partition: str, region: str, url: str) -> None:
    assert certificates.source(partition, region) == url


def test_a_bundle_with_one_broken_certificate_is_none() -> None:
    whole = certifi.contents()
    assert certificates.are_certificates(whole)
    assert not certificates.are_certificates(whole[: len(whole) // 2])
    assert not certificates.are_certificates("")
    assert not certificates.are_certificates("not é PEM")


# Taking down


def test_the_platform_goes_before_the_foundation(world: World) -> None:
    world.aws.up()
    world.engine.done.clear()
    world.aws.down()
    assert world.engine.done == ["destroy platform.dev-aws", "destroy foundation.dev-aws"]
    # The images went with the registry.
    folder = Path(world.aws.env()["LLM_PLATFORM_SETTINGS"])
    assert "images" not in (folder / "platform.yaml").read_text()


def test_what_is_protected_is_named_and_nothing_is_destroyed(world: World) -> None:
    world.engine.guarded = {"foundation.dev-aws": [URN]}
    with pytest.raises(DeployError) as refused:
        world.aws.down()
    assert world.engine.done == []
    said = str(refused.value)
    assert f"pulumi state unprotect --stack foundation.dev-aws '{URN}'" in said
    assert "llm-platform:ephemeral: true" in said
    assert "docs/backup.md" in said


def test_an_environment_that_was_never_made_goes_without_a_word(world: World) -> None:
    world.engine.known = []
    world.aws.down()
    assert world.engine.done == []


# What puts it in reach


def test_env_says_where_the_whole_settings_and_the_kubeconfig_are(world: World) -> None:
    own = world.aws.env()
    kubeconfig = Path(own["KUBECONFIG"])
    assert kubeconfig.read_text() == "{}"
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    whole = Path(own["LLM_PLATFORM_SETTINGS"]) / "foundation.yaml"
    assert "database_ca_file" in whole.read_text()
    assert "PULUMI_BACKEND_URL" not in own, "that is the user's to say"


def test_env_of_an_environment_that_is_not_there_yet_is_enough_for_a_preview(world: World) -> None:
    world.engine.known = []
    own = world.aws.env()
    assert "KUBECONFIG" not in own
    assert (Path(own["LLM_PLATFORM_SETTINGS"]) / "foundation.yaml").exists()


# Which environment


def test_an_environment_is_of_the_cloud_that_its_settings_say(world: World) -> None:
    assert isinstance(_environment("dev-aws", world.paths, print), Aws)
    assert isinstance(_environment("local", world.paths, print), Local)


def test_an_environment_without_settings_is_refused_with_those_that_there_are(
    world: World,
) -> None:
    with pytest.raises(DeployError, match=r"ENV=nowhere.*Known: dev-aws, local, prod-aws"):
        _environment("nowhere", world.paths, print)


# Settings, put together


COMMITTED = """\
# people's words
secretsprovider: awskms://alias/acme?region=eu-west-1
encryptedkey: AQID
config:
  llm-platform:cloud: aws
  llm-platform:account: {id: "012345678901", region: eu-west-1}
  llm-platform:window: 12:30
  llm-platform:tags:
    backup: yes
    number: "0123"
  llm-platform:images:
    services: mine
"""


def test_what_people_wrote_is_kept_letter_by_letter_and_wins(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.platform.dev-aws.yaml"
    file.write_text(COMMITTED)
    made = {"images": {"services": "theirs", "llamacpp": "made"}, "weights": {"gemma": "s3://w/1/"}}
    whole = StackSettings.read(file).with_made(made)
    assert yaml.safe_load(whole) == {
        **yaml.safe_load(COMMITTED),
        "config": {
            **yaml.safe_load(COMMITTED)["config"],
            "llm-platform:images": {"services": "mine", "llamacpp": "made"},
            "llm-platform:weights": {"gemma": "s3://w/1/"},
        },
    }
    # Not what one reader of YAML takes them for.
    for line in ("12:30", "backup: yes", 'number: "0123"'):
        assert line in whole
    assert str(file) in whole.splitlines()[0]


@pytest.mark.parametrize("text", ["config: [", "- a list", "config: 7"])
def test_what_is_no_settings_file_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(DeployError, match="isn't a stack's settings"):
        StackSettings.read(tmp_path / "Pulumi.yaml")


@pytest.mark.parametrize("name", ["dev-aws", "prod-aws"])
def test_the_committed_examples_say_that_they_are_examples(name: str) -> None:
    with pytest.raises(DeployError, match=r"addons\.prometheus\.image .* is an example"):
        AwsEnvironment.read(name)


# The engine


@pytest.fixture
def pulumi(tmp_path: Path) -> Engine:
    """An engine whose CLI answers what lies in files called after its first words."""
    program = tmp_path / "pulumi"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\n'
        f'for word in "$@"; do file="{tmp_path}/$word.json"\n'
        '[ -f "$file" ] && exec cat "$file"; done\ntrue\n'
    )
    program.chmod(0o755)
    backend = {"PULUMI_BACKEND_URL": "s3://state", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    return Engine(backend, tmp_path / "logs", tmp_path / "backups", print)


@pytest.fixture(autouse=True)
def _cli_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_settings_of_one_s_own_are_named_to_the_cli(pulumi: Engine, tmp_path: Path) -> None:
    pulumi.up("foundation.dev-aws", tmp_path / "whole.yaml")
    assert f"--config-file {tmp_path}/whole.yaml" in (tmp_path / "asked").read_text()


def test_a_failure_is_told_without_what_was_said_before_it(pulumi: Engine, tmp_path: Path) -> None:
    program = tmp_path / "pulumi"
    said = [
        "Diagnostics:",
        "  pulumi:pulumi:Stack (llm-platform-foundation.dev-aws):",
        "    Price of dev-aws: 347.24",
        "    error: update failed",
        "  aws:eks:AccessEntry (dev-aws-deployer):",
        "    error: 1 error occurred:",
        "      * no such role",
        "  aws:kms:Key (dev-aws-key):",
        "    it takes a while",
    ]
    program.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(said) + "\nEND\nexit 1\n")
    with pytest.raises(DeployError) as failed:
        pulumi.up("foundation.dev-aws")
    assert failed.value.reason.splitlines() == [said[1], *said[3:7]]


def test_what_is_protected_is_read_from_the_state(pulumi: Engine, tmp_path: Path) -> None:
    assert pulumi.environ
    resources = [{"urn": "urn:a", "protect": True}, {"urn": "urn:b"}]
    (tmp_path / "export.json").write_text(json.dumps({"deployment": {"resources": resources}}))
    assert pulumi.protected("foundation.dev-aws") == ["urn:a"]
    (tmp_path / "export.json").write_text(json.dumps({"version": 3}))
    assert pulumi.protected("foundation.dev-aws") == []


def test_a_provider_is_found_on_path_or_among_pulumi_s_own(pulumi: Engine, tmp_path: Path) -> None:
    (tmp_path / "plugin.json").write_text("[]")
    assert not pulumi.has_plugin("aws")
    (tmp_path / "plugin.json").write_text('[{"name": "aws", "kind": "resource"}]')
    assert pulumi.has_plugin("aws")
    (tmp_path / "plugin.json").unlink()
    (tmp_path / "pulumi-resource-aws").touch(mode=0o755)
    assert pulumi.has_plugin("aws")


def test_a_stack_of_an_organization_is_known_by_its_own_name(
    pulumi: Engine, tmp_path: Path
) -> None:
    names = ["acme/foundation.dev-aws", "platform.dev-aws"]
    (tmp_path / "ls.json").write_text(json.dumps([{"name": name} for name in names]))
    assert pulumi.stacks() == ["foundation.dev-aws", "platform.dev-aws"]
