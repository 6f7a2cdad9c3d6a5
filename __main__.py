"""The program: the stack's name says which layer of which environment to build."""

import pulumi

from stacks import foundation, platform
from stacks.reading import SettingsError, plain_errors

LAYERS = {"foundation": foundation.deploy, "platform": platform.deploy}

with plain_errors():
    layer, _, environment = pulumi.get_stack().partition(".")
    if layer not in LAYERS or not environment:
        raise SettingsError(
            f"the stack {pulumi.get_stack()!r} names no layer: call it foundation.<environment> "
            "or platform.<environment>"
        )
    LAYERS[layer](environment).publish()
