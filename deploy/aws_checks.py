"""What is looked at before anything is made, so that it doesn't fail late."""

import importlib.metadata
import shutil
from pathlib import Path

from lab.errors import StepError
from lab.oci import architecture
from lab.paths import LabPaths

from .aws_environment import AwsEnvironment
from .backend import FileBackend
from .certificates import are_certificates
from .engine import Engine
from .errors import DeployError
from .paths import REPOSITORY, Paths
from .preflight import credentials, tools
from .preflight.aws import Aws, rows_of
from .preflight.reading import read
from .preflight.report import Result

STEP = "looking whether all is there"
_DOCS = "docs/aws.md"
_HOW = f"""Say where: an S3 bucket by

  export PULUMI_BACKEND_URL='s3://acme-pulumi-state?region=us-east-1'

({_DOCS} has the commands that make one), or log in to one with `pulumi login`"""


def backend(engine: Engine, paths: Paths) -> str:
    """Return where state is kept.

    Raises:
        DeployError: nowhere, or with the lab, which takes it along when it goes.
    """
    try:
        address = engine.backend()
    except StepError as error:
        raise DeployError(STEP, f"Pulumi has no place for state.\n{error.reason}\n{_HOW}") from None
    folder = FileBackend.at(address)
    ours = (paths.pulumi, LabPaths.of_this_user().state)
    if folder and any(folder.root.resolve().is_relative_to(own.resolve()) for own in ours):
        raise DeployError(
            STEP,
            f"PULUMI_BACKEND_URL is {address}: that is the lab's, and goes with it "
            f'(`eval "$(make -s env)"` sets it). {_HOW}',
        )
    return address


def stacks_can_be_made(engine: Engine, environment: AwsEnvironment) -> None:
    """Look whether there is something to encrypt the secrets of new stacks with.

    Raises:
        DeployError: saying how stacks are made with a key.
    """
    if engine.backend().startswith("http"):
        if not environment.platform.foundation:
            raise DeployError(
                STEP,
                f"llm-platform:foundation is missing in {environment.above.file}: with Pulumi "
                "Cloud the foundation's stack is called after its organization; write "
                f"ORGANIZATION/llm-platform/foundation.{environment.name}",
            )
        return
    if {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & set(engine.environ):
        return
    known = engine.stacks()
    for stack, settings in environment.stacks.items():
        if stack not in known and not settings.secrets_provider:
            raise DeployError(
                STEP,
                f"there is no stack {stack} yet, and nothing to encrypt its secrets with. Make it "
                f"with a key ({_DOCS}), and commit what that writes into {settings.file}:\n\n"
                f"  pulumi stack init {stack} --secrets-provider "
                f"'awskms://alias/acme-pulumi?region={environment.region}'\n\n"
                "or set PULUMI_CONFIG_PASSPHRASE_FILE",
            )


def provider(engine: Engine) -> None:
    """Look whether Pulumi finds the provider, or fetches it.

    Raises:
        DeployError: naming the command that installs it.
    """
    if engine.fetches_plugins or engine.has_plugin("aws"):
        return
    version = importlib.metadata.version("pulumi_aws")
    raise DeployError(
        STEP,
        "Pulumi's provider for AWS isn't there, and this Pulumi may not fetch it "
        "(PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION). Install it:\n\n"
        f"  pulumi plugin install resource aws {version}",
    )


def account(environment: AwsEnvironment, aws: Aws) -> str:
    """Return who we are, once it is known that this is the account of the settings.

    Raises:
        DeployError: there are no credentials, or those of another account; the AWS CLI is missing.
    """
    plan = read(environment.name, environment.below.file.parent)
    (who,) = rows_of(aws, credentials.CHECK, lambda: credentials.check(plan, aws))
    wrong = [row for row in tools.check() if row.result is Result.WOULD_FAIL]
    wrong += [] if who.result is Result.OK else [who]
    for row in wrong:
        raise DeployError(STEP, f"{row.check}: {row.found}; {row.todo}")
    return who.found


def making_images(engine: Engine, environment: AwsEnvironment) -> None:
    """Look whether images can be made here that run on the environment's nodes.

    Raises:
        DeployError: naming what is missing, and the setting that does without it.
    """
    if not environment.images_to_make:
        return
    instead = (
        "Or name images of yours: "
        + ", ".join(f"llm-platform:images.{name}" for name in environment.images_to_make)
        + f" in {environment.above.file}"
    )
    for program in ("mmdebstrap", "skopeo", "uv"):
        if shutil.which(program, path=engine.environ.get("PATH")) is None:
            raise DeployError(
                STEP,
                f"{program} isn't on PATH, and images are made with it (on Debian: apt-get "
                f"install mmdebstrap skopeo; uv comes with this repository's `make`). {instead}",
            )
    if architecture() != "amd64":
        raise DeployError(
            STEP,
            f"this machine is of {architecture()}, and images are made for its own kind; the "
            f"environment's nodes are of amd64. Run this on such a machine. {instead}",
        )


def certificates_file(environment: AwsEnvironment) -> Path | None:
    """Return the file that the settings name for the certificates of RDS, where they do.

    Raises:
        DeployError: there is no such file, or no certificates are in it.
    """
    named = environment.below.given.get("database_ca_file")
    if not named:
        return None
    # As the program reads it, which runs there.
    file = REPOSITORY / str(named)
    if not file.is_file() or not are_certificates(file.read_text()):
        raise DeployError(
            STEP,
            f"llm-platform:database_ca_file in {environment.below.file}: {file} isn't a file with "
            "certificates (PEM); leave the setting out, and they are fetched",
        )
    return file
