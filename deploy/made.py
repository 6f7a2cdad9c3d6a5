"""What was made for an environment, and its settings with it, as Pulumi takes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.commands import write

from .settings import StackSettings

_KINDS = ("images", "weights")


@dataclass(frozen=True)
class Made:
    """A folder of this user's with what ``make up`` made last, and with settings files.

    Args:
        folder: The environment's own.
    """

    folder: Path

    def keep(self, kind: str, made: Mapping[str, str]) -> None:
        """Remember images or weights that were published.

        Args:
            kind: The setting: ``images`` or ``weights``.
            made: By their names.
        """
        write(self._file, json.dumps({**self.all(), kind: dict(made)}, indent=1))

    def all(self) -> dict[str, dict[str, str]]:
        """What was published last from this machine, by setting."""
        known = json.loads(self._file.read_text()) if self._file.exists() else {}
        return {kind: dict(known.get(kind, {})) for kind in _KINDS}

    def forget(self) -> None:
        """Forget it: it went with the environment."""
        self._file.unlink(missing_ok=True)

    def foundation(self, settings: StackSettings, ca_file: Path) -> Path:
        """Write the foundation's settings anew, and return their file."""
        text = settings.with_made({"database_ca_file": str(ca_file)})
        return write(self.folder / "foundation.yaml", text, 0o600)

    def platform(self, settings: StackSettings) -> Path:
        """Write the platform's settings anew, and return their file."""
        made = {kind: values for kind, values in self.all().items() if values}
        return write(self.folder / "platform.yaml", settings.with_made(made), 0o600)

    @property
    def _file(self) -> Path:
        return self.folder / "made.json"
