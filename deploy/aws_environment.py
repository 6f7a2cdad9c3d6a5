"""An environment in AWS as its settings have it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from components.domain.args import Args
from stacks.aws_settings import AwsFoundationSettings, AwsPlatformSettings
from stacks.reading import SettingsError, parse

from .errors import DeployError
from .paths import REPOSITORY
from .settings import PREFIX, STEP, StackSettings

DEMO_MODEL = "gemma"
"""What clients call the demo's endpoint."""

_SERVICES, _DEMO_ENGINE, _DEMO_TEAM = "services", "llamacpp", "demo"
_NOBODYS_DIGEST = "@sha256:" + "0" * 64
# Stands for an image that isn't made yet, while the rest of the settings is looked at.
_LATER = "later.invalid/image@sha256:" + "1" * 64
_S = TypeVar("_S", bound=Args)


@dataclass(frozen=True)
class AwsEnvironment:
    """The settings of both stacks, each in itself valid, and fitting together.

    Args:
        name: The environment's name, such as ``dev-aws``.
        below: The committed settings of the foundation.
        above: Those of the platform.
        foundation: What the foundation's say.
        platform: What the platform's say.
    """

    name: str
    below: StackSettings
    above: StackSettings
    foundation: AwsFoundationSettings
    platform: AwsPlatformSettings

    @classmethod
    def read(cls, name: str, folder: Path = REPOSITORY / "stacks") -> "AwsEnvironment":
        """Read both files; what ``make up`` makes may be missing in them.

        Raises:
            DeployError: naming the file and each setting that is missing or wrong.
        """
        below, above = (
            StackSettings.read(folder / f"Pulumi.{layer}.{name}.yaml")
            for layer in ("foundation", "platform")
        )
        made = {"database_ca_file": "later", **below.given}
        foundation = _parsed(AwsFoundationSettings, below, made, f"foundation.{name}")
        images = {_SERVICES: _LATER, **_mapping(above.given.get("images"))}
        made = {**above.given, "images": images}
        platform = _parsed(AwsPlatformSettings, above, made, f"platform.{name}")
        found = cls(name, below, above, foundation, platform)
        found._check()
        return found

    @property
    def stacks(self) -> dict[str, StackSettings]:
        """The settings of each stack, in the order in which they are brought up."""
        return {f"foundation.{self.name}": self.below, f"platform.{self.name}": self.above}

    @property
    def region(self) -> str:
        """Where it is."""
        return self.foundation.account.region

    @property
    def images_to_make(self) -> list[str]:
        """The images that the settings don't name, and that the registry has a place for."""
        named = _mapping(self.above.given.get("images"))
        places = self.foundation.registry.repositories
        return [name for name in (_SERVICES, _DEMO_ENGINE) if name not in named and name in places]

    @property
    def has_demo(self) -> bool:
        """Whether the demo's endpoint is part of it: with its team, its weights and its engine."""
        teams = {team.name for team in self.platform.teams}
        engine = self.platform.images.llamacpp or _DEMO_ENGINE in self.images_to_make
        return _DEMO_TEAM in teams and bool(engine)

    @property
    def demo_weights(self) -> str:
        """Where the settings say that the demo's weights are; nothing when they don't."""
        return self.platform.weights.get(DEMO_MODEL, "")

    def _check(self) -> None:
        """Refuse what would fail late, with half of the environment made.

        Raises:
            DeployError: naming the setting.
        """
        for name in ("account", "name"):
            one, other = getattr(self.foundation, name), getattr(self.platform, name)
            if one != other:
                raise DeployError(
                    STEP,
                    f"{PREFIX}{name}: {self.below.file} says {_said(one)}, and {self.above.file} "
                    f"says {_said(other)}: both are of one environment, so write the same",
                )
        for settings in self.stacks.values():
            for path in _placeholders(settings.given):
                raise DeployError(
                    STEP,
                    f"{PREFIX}{path} in {settings.file} is an example: its digest is all zeros; "
                    "write the one of the image that you want (skopeo inspect --format "
                    "'{{.Digest}}' docker://…)",
                )
        named = _mapping(self.above.given.get("images"))
        if _SERVICES not in named and _SERVICES not in self.foundation.registry.repositories:
            raise DeployError(
                STEP,
                f"{PREFIX}registry.repositories in {self.below.file} has no {_SERVICES!r}, so that "
                f"image has no place: add it, or name one of yours in {PREFIX}images.{_SERVICES} "
                f"of {self.above.file}",
            )


def _parsed(kind: type[_S], settings: StackSettings, given: Mapping[str, Any], stack: str) -> _S:
    if given.get("cloud") != "aws":
        raise DeployError(
            STEP, f"{settings.file}: {PREFIX}cloud is {given.get('cloud')!r} and not 'aws'"
        )
    try:
        return parse({"aws": kind}, given, stack)
    except SettingsError as error:
        raise DeployError(STEP, str(error)) from None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _said(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _placeholders(value: Any, path: str = "") -> list[str]:
    """Return where in the settings an image is named by nobody's digest."""
    if isinstance(value, Mapping):
        inner = ((f"{path}.{name}".lstrip("."), each) for name, each in value.items())
        return [found for at, each in inner for found in _placeholders(each, at)]
    return [path] if str(value).endswith(_NOBODYS_DIGEST) else []
