"""What keeps stateful things from being deleted or replaced by accident."""

from collections.abc import Sequence

import pulumi


def kept(
    parent: pulumi.Resource, *, ephemeral: bool, ignore_changes: Sequence[str] = ()
) -> pulumi.ResourceOptions:
    """Return the options of a resource that holds state: Pulumi refuses to delete or replace it.

    Only these are protected, not what stands around them: a rule for a client that is gone, or an
    instance too many, may go.

    Args:
        parent: The component that it belongs to.
        ephemeral: Whether the environment may be thrown away; then it is as its parent is.
        ignore_changes: What isn't brought back to what it was at the beginning.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        protect=None if ephemeral else True,
        ignore_changes=list(ignore_changes) or None,
    )
