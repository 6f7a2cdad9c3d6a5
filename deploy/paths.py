"""Where this machine keeps what outlives a checkout: caches that may go, state that may not."""

from dataclasses import dataclass
from pathlib import Path

from lab.paths import cache_dir, state_dir

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Paths:
    """The per-user folders, by the XDG rules.

    Args:
        cache: What can be made again: root file systems, package layers.
        state: What can't: Pulumi's state, its passphrase, the lab's kubeconfig.
    """

    cache: Path
    state: Path

    @classmethod
    def of_user(cls) -> "Paths":
        """The folders of the user that runs this."""
        return cls(cache=cache_dir(), state=state_dir())

    @property
    def images(self) -> Path:
        """Layers and layouts of the platform's images."""
        return self.cache / "images"

    @property
    def logs(self) -> Path:
        """What the programs behind each step printed."""
        return self.state / "logs"

    @property
    def pulumi(self) -> Path:
        """File backends, one for each cluster of the user's; the lab's lies with its cluster."""
        return self.state / "pulumi"

    def environment(self, name: str) -> Path:
        """What is kept of an environment in a cloud: what was made for it, and its settings."""
        return self.state / "environments" / name

    @property
    def certificates(self) -> Path:
        """Certificates of authorities that clouds sign their databases' with."""
        return self.state / "certificates"

    @property
    def passphrase(self) -> Path:
        """What encrypts the secrets in that state; made once, readable by its owner only."""
        return self.state / "passphrase"
