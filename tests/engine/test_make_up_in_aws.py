"""``make up`` and ``make down`` of an environment in AWS, with the real engine and its CLI.

Only the foundation can be made: the stand-in's cluster has no API, which is said.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
import yaml

from deploy import aws, aws_checks, certificates, engine, session
from deploy.aws import Aws
from deploy.engine import Engine
from deploy.errors import DeployError
from deploy.paths import REPOSITORY, Paths
from tests.engine.aws_harness import AwsEngine, moto_server

pytestmark = pytest.mark.timeout(300)

ACCOUNT = "123456789012"
DIGEST = "sha256:" + "7" * 64
ROLE = "deployer"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program as it is, with settings of its own: the engine writes into them."""
    folder = tmp_path / "repository"
    (folder / "stacks").mkdir(parents=True)
    for name in ("Pulumi.yaml", "__main__.py", "components", "planning"):
        (folder / name).symlink_to(REPOSITORY / name)
    for file in (REPOSITORY / "stacks").glob("*.py"):
        (folder / "stacks" / file.name).symlink_to(file)
    where = {"id": ACCOUNT, "region": "us-east-1"}
    both = {"cloud": "aws", "account": where, "tags": {"owner": "us", "cost_center": "ours"}}
    layers = {
        "foundation": {
            **both,
            "size": "dev",
            "network": {"zones": ["us-east-1a", "us-east-1b"], "nat": "one"},
            "cluster": {"deployer_arn": f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"},
        },
        "platform": {
            **both,
            "cluster_name": "dev-aws",
            "gateway": {"domain": "llm.example.com", "clients": ["10.0.0.0/8"]},
            "images": {name: f"{name}@{DIGEST}" for name in ("services", "llamacpp")},
            "addons": {"prometheus": {"source": "manifests", "image": f"prometheus@{DIGEST}"}},
        },
    }
    for layer, settings in layers.items():
        config = {f"llm-platform:{name}": value for name, value in settings.items()}
        text = "# Ours.\n" + yaml.safe_dump({"config": config})
        (folder / f"stacks/Pulumi.{layer}.dev-aws.yaml").write_text(text)
    monkeypatch.setattr(engine, "REPOSITORY", folder)
    return folder


@pytest.fixture
def account(
    moto: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> AwsEngine:
    """An account with the role that deploys, and this machine's way to it."""
    account = AwsEngine(tmp_path, moto, tmp_path_factory.getbasetemp() / "sdk")
    account.call(
        "iam", "CreateRole", RoleName=ROLE, AssumeRolePolicyDocument='{"Version": "2012-10-17"}'
    )
    account.executable("aws", "#!/bin/sh\necho aws-cli/2.20.0\n")
    for name, value in account.environment.items():
        monkeypatch.setenv(name, value)

    def open_engine(environ: dict[str, str], paths: Paths, _: object) -> Engine:
        return Engine(environ, paths.logs, paths.state / "backups", print)

    monkeypatch.setattr(session, "open_cloud_engine", open_engine)
    monkeypatch.setattr(aws, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(aws_checks, "architecture", lambda: "amd64")
    monkeypatch.setattr(certificates, "_fetched", lambda _: certifi.contents())
    return account


def set_ephemeral(repository: Path, value: bool) -> None:
    for layer in ("foundation", "platform"):
        file = repository / f"stacks/Pulumi.{layer}.dev-aws.yaml"
        whole = yaml.safe_load(file.read_text())
        whole["config"]["llm-platform:ephemeral"] = value
        file.write_text("# Ours.\n" + yaml.safe_dump(whole))


def test_a_foundation_comes_stays_while_it_is_protected_and_goes(
    repository: Path, account: AwsEngine, tmp_path: Path
) -> None:
    paths = Paths(cache=tmp_path / "cache", state=tmp_path / "xdg")
    environment = Aws("dev-aws", paths, dict(os.environ), print, repository / "stacks")

    with pytest.raises(DeployError, match=r"takes no connection.*The foundation is up"):
        environment.up()
    assert len(account.objects("rds/cluster:Cluster")) == 1
    committed = (repository / "stacks/Pulumi.foundation.dev-aws.yaml").read_text()
    assert "database_ca_file" not in committed
    assert committed.startswith("# Ours.")

    before = account.log
    with pytest.raises(DeployError, match=r"state unprotect .*rds/cluster:Cluster"):
        environment.down()
    assert account.log == before

    set_ephemeral(repository, True)
    with pytest.raises(DeployError, match="The foundation is up"):
        environment.up()
    environment.down()
    assert account.objects("rds/cluster:Cluster", "s3/bucket:Bucket", "kms/key:Key") == []
