"""What can go wrong in a step, said in a way that tells what to do."""

from pathlib import Path


class StepError(Exception):
    """A step failed for good.

    Args:
        step: What was being done, in words.
        reason: Why it failed, and what to do about it.
        log: The file that says more, if there is one.
    """

    def __init__(self, step: str, reason: str, log: Path | None = None) -> None:
        where = f"\n  log: {log}" if log else ""
        super().__init__(f"{step} failed: {reason.strip()}{where}")
        self.step = step
        self.reason = reason
        self.log = log
