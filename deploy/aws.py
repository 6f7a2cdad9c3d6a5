"""An environment in AWS, from its settings to an answer, and back."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.commands import alone, write
from lab.progress import Report

from . import aws_checks, certificates, session
from .ask import Gateway
from .aws_ask import ask
from .aws_environment import DEMO_MODEL, AwsEnvironment
from .ecr import logged_in
from .engine import Engine
from .errors import DeployError
from .images import publish_all
from .made import Made
from .paths import REPOSITORY, Paths
from .preflight.aws import Aws as Asked
from .reach import PATIENCE_SECONDS, why_unreachable
from .settings import PREFIX, StackSettings
from .weights import Target, publish_demo

SETTINGS = "LLM_PLATFORM_SETTINGS"
"""The folder with an environment's whole settings, for ``pulumi --config-file``."""

_SHOWN_URNS = 20


@dataclass(frozen=True)
class Aws:
    """Brings an environment in AWS up and down.

    Args:
        name: The environment, such as ``dev-aws``.
        paths: Where this machine keeps state and caches.
        environ: What the user said: where Pulumi's state is, whose credentials.
        report: Takes a line of progress.
        folder: Where the settings are.
    """

    name: str
    paths: Paths
    environ: Mapping[str, str]
    report: Report
    folder: Path = REPOSITORY / "stacks"

    def up(self) -> None:
        """Foundation, images, weights, platform, and one question to the model."""
        with self._alone():
            self._up()

    def _up(self) -> None:
        self.report("1/7 checks")
        environment, engine = self._ready()
        aws_checks.stacks_can_be_made(engine, environment)
        aws_checks.making_images(engine, environment)
        self.report("2/7 certificates of RDS")
        ca_file = self._certificates(environment)
        self.report("3/7 foundation: network, cluster, nodes, database, Redis, buckets, registry")
        outputs = self._update(
            engine,
            self.foundation,
            environment.below,
            lambda settings: self._made.foundation(settings, ca_file),
        )
        _require_cluster(outputs, environment)
        self._require_reach(str(outputs["cluster_endpoint"]))
        self.report("4/7 images")
        self._publish_images(outputs, environment)
        self.report("5/7 weights")
        self._publish_weights(outputs, environment)
        self.report("6/7 platform: operators, add-ons, gateway, cacher, endpoints")
        outputs = self._update(engine, self.platform, environment.above, self._made.platform)
        self.report("7/7 one question")
        gateway = Gateway(outputs["gateway_address"], outputs["admin_key"])
        ask(gateway, environment, self.report)

    def down(self) -> None:
        """Destroy both stacks, unless something in them is protected: then nothing is destroyed."""
        with self._alone():
            self.report("1/2 checks")
            _, engine = self._ready()
            known = [it for it in (self.platform, self.foundation) if it in engine.stacks()]
            self._require_unprotected({stack: engine.protected(stack) for stack in known})
            self.report("2/2 platform, then foundation")
            engine.destroy_known(self.platform, self.foundation)
            self._made.forget()

    def env(self) -> dict[str, str]:
        """Return the environment in which ``pulumi`` and ``kubectl`` work with it.

        The files with the whole settings, which ``pulumi --config-file`` takes, are written anew.
        """
        environment = AwsEnvironment.read(self.name, self.folder)
        engine = session.open_cloud_engine(self.environ, self.paths, self.report)
        aws_checks.backend(engine, self.paths)
        self._made.foundation(environment.below, self._certificates(environment))
        self._made.platform(environment.above)
        own = {**session.cloud_environment(), SETTINGS: str(self._made.folder)}
        known = self.foundation in engine.stacks()
        kubeconfig = engine.outputs(self.foundation).get("kubeconfig") if known else None
        if kubeconfig:
            file = write(self._made.folder / "kubeconfig", str(kubeconfig), 0o600)
            own["KUBECONFIG"] = str(file)
        return own

    @property
    def foundation(self) -> str:
        """The foundation's stack."""
        return f"foundation.{self.name}"

    @property
    def platform(self) -> str:
        """The platform's stack."""
        return f"platform.{self.name}"

    @property
    def _made(self) -> Made:
        return Made(self.paths.environment(self.name))

    def _alone(self) -> AbstractContextManager[int]:
        lock = self._made.folder / "up.lock"
        return alone(lock, self.report, f"waiting for another make up or down of {self.name}")

    def _ready(self) -> tuple[AwsEnvironment, Engine]:
        """Read the settings, open the engine, and look whether both can be worked with."""
        environment = AwsEnvironment.read(self.name, self.folder)
        engine = session.open_cloud_engine(self.environ, self.paths, self.report)
        self.report(f"    state in {aws_checks.backend(engine, self.paths)}")
        aws_checks.provider(engine)
        with Asked(environment.region) as aws:
            self.report(f"    as {aws_checks.account(environment, aws)}, {environment.region}")
        return environment, engine

    def _update(
        self,
        engine: Engine,
        stack: str,
        committed: StackSettings,
        whole: Callable[[StackSettings], Path],
    ) -> dict[str, Any]:
        """Bring a stack up with its whole settings, and return its outputs."""
        engine.select(stack, committed.secrets_provider)
        # For a new one that writes into the file what its secrets are encrypted with.
        engine.up(stack, whole(StackSettings.read(committed.file)))
        return engine.outputs(stack)

    def _certificates(self, environment: AwsEnvironment) -> Path:
        """Return the file with the certificates of the region's databases."""
        named = aws_checks.certificates_file(environment)
        if named:
            self.report(f"    {PREFIX}database_ca_file: {named}")
            return named
        account = environment.foundation.account
        url = certificates.source(account.partition, account.region)
        return certificates.bundle(url, self.paths.certificates, self.report)

    def _require_reach(self, api: str) -> None:
        """Refuse to go on where the cluster's API isn't reached: only the foundation can do so.

        Raises:
            DeployError: saying from where it is reached.
        """
        reason = why_unreachable(api, PATIENCE_SECONDS, self.report)
        if reason:
            raise DeployError(
                "reaching the cluster's API",
                f"{api} takes no connection from this machine ({reason}). The foundation is up. "
                "What comes now needs the API: run this again from inside of the network, or name "
                f"this machine's address in {PREFIX}cluster.public_access_cidrs "
                "(docs/aws.md, A private API)",
            )

    def _publish_images(self, outputs: Mapping[str, Any], environment: AwsEnvironment) -> None:
        """Make the images that the settings don't name, and push them to ECR."""
        names = environment.images_to_make
        for name in environment.above.given.get("images") or {}:
            self.report(f"    {PREFIX}images.{name}: as in the settings")
        if not names:
            return
        with (
            Asked(environment.region) as aws,
            logged_in(str(outputs["registry"]), aws, self._made.folder / "registry-login") as ecr,
        ):
            self._made.keep("images", publish_all(names, ecr, self.paths, self.report))

    def _publish_weights(self, outputs: Mapping[str, Any], environment: AwsEnvironment) -> None:
        """Publish the demo's weights where every team may read, where there is a demo."""
        if not environment.has_demo:
            self.report("    there is no team 'demo' with an image for it: no demo, no weights")
            self._made.keep("weights", {})
        elif environment.demo_weights:
            self.report(f"    {PREFIX}weights.{DEMO_MODEL}: as in the settings")
        else:
            target = Target.of_aws(str(outputs["weights_bucket"]), environment.region)
            source = publish_demo(target, self.paths, self.report)
            self._made.keep("weights", {DEMO_MODEL: source})

    def _require_unprotected(self, protected: Mapping[str, list[str]]) -> None:
        commands = [
            f"  pulumi state unprotect --stack {stack} '{urn}'"
            for stack, urns in protected.items()
            for urn in urns
        ]
        if not commands:
            return
        more = len(commands) - _SHOWN_URNS
        rest = [f"  and {more} more"] if more > 0 else []
        raise DeployError(
            f"bringing {self.name} down",
            "\n".join(
                [
                    f"{len(commands)} resources are protected, and nothing was changed.",
                    "To throw the environment away with all its data: set "
                    f"{PREFIX}ephemeral: true in both settings files, `make up ENV={self.name}`, "
                    "and this again.",
                    "To let go of single ones (docs/backup.md says what goes with each, and what "
                    "AWS protects besides):",
                    *commands[:_SHOWN_URNS],
                    *rest,
                ]
            ),
        )


def _require_cluster(outputs: Mapping[str, Any], environment: AwsEnvironment) -> None:
    """Refuse a platform whose settings name another cluster than its foundation's.

    Raises:
        DeployError: naming the setting.
    """
    named, made = environment.platform.cluster_name, outputs["cluster_name"]
    if named != made:
        raise DeployError(
            "looking at the foundation's cluster",
            f"{PREFIX}cluster_name in {environment.above.file} is {named!r}, but the cluster is "
            f"called {made!r}: write that",
        )
