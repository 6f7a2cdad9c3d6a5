"""The environment ``local``, from nothing to an answer, and back."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from lab import cluster as lab
from lab import toolchain
from lab.commands import alone, write
from lab.paths import LabPaths
from lab.progress import Report

from . import session
from .addons import ADDONS, addon_settings, present
from .ask import QUESTION, Gateway
from .cluster import Cluster, choose, require_same
from .images import RECIPES, publish_all
from .paths import Paths
from .weights import Target, publish_demo

FOUNDATION, PLATFORM = "foundation.local", "platform.local"
_DATA_IMAGES = ("postgres", "redis", "objectstore")
_SERVICE_IMAGES = ("services", "llamacpp")


@dataclass(frozen=True)
class Local:
    """Brings the local environment up and down.

    Args:
        paths: Where this machine keeps state and caches.
        environ: What the user said: CONTEXT, KUBECONFIG, REGISTRY, NODE_ADDRESS.
        report: Takes a line of progress.
    """

    paths: Paths
    environ: Mapping[str, str]
    report: Report

    def up(self) -> None:
        """Cluster, images, foundation, weights, platform, and one question to the model."""
        with alone(self.paths.state / "up.lock", self.report, "waiting for another make up"):
            self._up()

    def _up(self) -> None:
        self.report("1/6 cluster")
        cluster = choose(self.environ, self.report)
        engine = session.open_engine(self.paths, self.report)
        self.report("2/6 images")
        images = self.publish_images(cluster)
        self.report("3/6 foundation: Postgres, Redis, object store")
        engine.select(FOUNDATION)
        require_same(engine.outputs(FOUNDATION).get("kubeconfig", ""), cluster)
        engine.configure(FOUNDATION, self._foundation_settings(cluster, images))
        engine.up(FOUNDATION)
        self.report("4/6 weights")
        bucket = Target.of_local(engine.outputs(FOUNDATION))
        source = publish_demo(bucket, self.paths, self.report)
        self.report("5/6 platform: gateway, cacher, endpoints")
        engine.select(PLATFORM)
        engine.configure(PLATFORM, self._platform_settings(cluster, images, source))
        engine.up(PLATFORM)
        self.report("6/6 one question")
        outputs = engine.outputs(PLATFORM)
        gateway = Gateway(outputs["gateway_address"], outputs["admin_key"])
        answer = gateway.ask("gemma", QUESTION, self.report)
        self._show(gateway, answer)

    def down(self) -> None:
        """Destroy both stacks, and the lab's cluster when that was used."""
        with alone(self.paths.state / "up.lock", self.report, "waiting for another make up"):
            ours = not self.environ.get("CONTEXT")
            # A lab that doesn't answer takes all that is in it along, its stacks' state too.
            if not ours or lab.is_healthy(LabPaths.of_this_user()):
                engine = session.open_engine(self.paths, self.report)
                engine.destroy_known(PLATFORM, FOUNDATION)
            if ours:
                lab.down(self.report)

    def env(self) -> dict[str, str]:
        """Return the environment in which ``pulumi`` and ``kubectl`` work with it."""
        return session.environment(self.paths)

    def publish_images(self, cluster: Cluster) -> dict[str, str]:
        """Make all images and push them; return each one's name by digest."""
        toolchain.ensure(["versitygw", *ADDONS], self.report)
        return publish_all(RECIPES, cluster.registry, self.paths, self.report)

    def _foundation_settings(self, cluster: Cluster, images: Mapping[str, str]) -> dict[str, str]:
        return {
            "llm-platform:kubeconfig": str(cluster.kubeconfig),
            "llm-platform:context": cluster.context,
            "llm-platform:registry": cluster.registry.prefix,
            **{f"llm-platform:images.{name}": images[name] for name in _DATA_IMAGES},
        }

    def _platform_settings(
        self, cluster: Cluster, images: Mapping[str, str], weights: str
    ) -> dict[str, str]:
        return {
            **{f"llm-platform:images.{name}": images[name] for name in _SERVICE_IMAGES},
            **addon_settings(images, present(cluster)),
            "llm-platform:weights.gemma": weights,
            **cluster.gateway_address(),
        }

    def _show(self, gateway: Gateway, answer: str) -> None:
        print(f"\n{QUESTION}\n{answer}\n\ngateway   {gateway.address}")
        shown = session.backend(self.paths) / "key-shown"
        fingerprint = hashlib.sha256(gateway.key.encode()).hexdigest()
        if not shown.exists() or shown.read_text() != fingerprint:
            print(f"key       {gateway.key}   (shown this once)")
            write(shown, fingerprint, 0o600)
        named = "".join(
            f" {name}={shlex.quote(self.environ[name])}"
            for name in ("KUBECONFIG", "CONTEXT")
            if self.environ.get("CONTEXT") and self.environ.get(name)
        )
        print(
            "\nAsk it yourself:\n"
            f'  eval "$(make -s env{named})"   # pulumi, kubectl and the state in reach\n'
            "  export LLM_PLATFORM_KEY=$(pulumi stack output admin_key --show-secrets "
            f"--stack {PLATFORM})\n"
            f"  {gateway.curl('gemma', QUESTION)}"
        )
