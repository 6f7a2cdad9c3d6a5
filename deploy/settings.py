"""A stack's settings as they are committed, and with what was made for them.

What ``make up`` makes, images and weights, isn't written into the committed files: it is put
together with them in a file of this user's, which Pulumi takes by ``--config-file``. So a checkout
stays as it is, and Pulumi's history has all of what a stack was updated with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.representer import SafeRepresenter

from .errors import DeployError

STEP = "reading the settings"
PREFIX = "llm-platform:"


@dataclass(frozen=True)
class StackSettings:
    """The settings of one stack.

    Args:
        file: Where they are committed.
        text: What stands there.
        given: The project's own, without the project's name before theirs.
        secrets_provider: What encrypts the stack's secrets; empty where the file doesn't say.
    """

    file: Path
    text: str
    given: Mapping[str, Any]
    secrets_provider: str = ""

    @classmethod
    def read(cls, file: Path) -> "StackSettings":
        """Read a file.

        Raises:
            DeployError: it isn't there, or isn't a stack's settings.
        """
        if not file.is_file():
            raise DeployError(STEP, f"there is no {file}")
        text = file.read_text()
        try:
            whole = yaml.safe_load(text) or {}
            config = whole.get("config") or {}
            given = {
                str(name).removeprefix(PREFIX): value
                for name, value in config.items()
                if str(name).startswith(PREFIX)
            }
        except (yaml.YAMLError, AttributeError) as error:
            raise DeployError(STEP, f"{file} isn't a stack's settings: {error}") from error
        return cls(file, text, given, str(whole.get("secretsprovider") or ""))

    def with_made(self, made: Mapping[str, Any]) -> str:
        """Return the whole file with what was made; what people wrote wins.

        Args:
            made: More settings of the project.
        """
        # By its nodes, which keep each value as it is written: `12:30` is a number to some readers.
        root = yaml.compose(self.text, Loader=yaml.SafeLoader)
        config = {f"{PREFIX}{name}": value for name, value in made.items()}
        if not isinstance(root, yaml.MappingNode):
            return yaml.safe_dump({"config": config})
        _add(root, {"config": config})
        head = f"# Made by `make` from {self.file} and what was published: change that one.\n"
        return head + yaml.serialize(root, Dumper=yaml.SafeDumper)


def _add(node: yaml.MappingNode, more: Mapping[str, Any]) -> None:
    there = {key.value: value for key, value in node.value}
    for name, value in more.items():
        inner = there.get(name)
        if inner is None:
            node.value.append((_node(name), _node(value)))
        elif isinstance(inner, yaml.MappingNode) and isinstance(value, Mapping):
            _add(inner, value)


def _node(value: Any) -> yaml.Node:
    return SafeRepresenter().represent_data(value)
