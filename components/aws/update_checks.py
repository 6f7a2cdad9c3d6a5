"""Changes that AWS would refuse, or take wrongly: they are refused in the preview already."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from ..domain.kubernetes_versions import upgrade_problem

Inputs = Mapping[str, Any]
Check = Callable[[Inputs, Inputs], str | None]
"""Says what is wrong with a change, from the inputs before and after it, or nothing."""


def refuse_before_update(name: str, check: Check) -> pulumi.ResourceHookBinding:
    """Return the hook that ends a preview or an update before a change that can't be made.

    Args:
        name: The hook's name; no two hooks of a program have the same.
        check: Compares a resource's inputs before and after the change.
    """

    def before_update(args: pulumi.ResourceHookArgs) -> None:
        problem = check(args.old_inputs or {}, args.new_inputs or {})
        if problem:
            raise ValueError(problem)

    hook = pulumi.ResourceHook(
        name, before_update, opts=pulumi.ResourceHookOptions(on_dry_run=True)
    )
    return pulumi.ResourceHookBinding(before_update=[hook])


def skipped_minor(old: Inputs, new: Inputs) -> str | None:
    """Say that a control plane would skip a minor, or go back."""
    before, after = old.get("version"), new.get("version")
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    return upgrade_problem(before, after)


def floor_above_desired(old: Inputs, new: Inputs) -> str | None:
    """Say that a node group's least number of nodes is above the number that it has.

    The number that it has is the autoscaler's; ours is ignored, so AWS gets the one in the state
    and refuses ("Minimum capacity 3 can't be greater than desired size 2"; seen by many, for
    example terraform-aws-modules/terraform-aws-eks#3521).
    """
    del old
    scaling: Mapping[str, Any] = new.get("scalingConfig") or {}
    least, desired = scaling.get("minSize"), scaling.get("desiredSize")
    if not isinstance(least, int | float) or not isinstance(desired, int | float):
        return None
    if least <= desired:
        return None
    return (
        f"warm_floor={least:.0f}: the node group has {desired:.0f} as far as the state knows, and "
        "AWS takes no floor above that. Raise it first (aws eks update-nodegroup-config "
        f"--cluster-name … --nodegroup-name … --scaling-config desiredSize={least:.0f}), then run "
        "pulumi up --refresh"
    )
