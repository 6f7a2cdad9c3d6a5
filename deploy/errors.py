"""What can go wrong on the way, each with what to do about it."""


class DeployError(Exception):
    """A step failed; the message says which, why, and what to do."""


class CommandError(DeployError):
    """A program that a step ran ended with an error."""

    def __init__(self, program: str, code: int, tail: str, log: str) -> None:
        """Keep what it printed: ``tail`` is the end of its output, ``log`` the file with all of it."""
        super().__init__(f"{program} ended with code {code}:\n{tail}\nAll of its output: {log}")
        self.code = code
        self.tail = tail


class StackLockedError(DeployError):
    """Somebody else's update holds the stack, or the proof that its owner is dead is missing."""
