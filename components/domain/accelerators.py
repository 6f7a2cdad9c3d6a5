"""What a worker computes on."""

from enum import StrEnum

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource that a node offers and a pod asks for."""


class Accelerator(StrEnum):
    """The kinds of processor that a worker may ask for."""

    CPU = "cpu"
    L4 = "l4"
    A10G = "a10g"
    L40S = "l40s"
    A100_80GB = "a100-80gb"
    H100 = "h100"

    @property
    def is_gpu(self) -> bool:
        """Whether workers ask for GPUs."""
        return self is not Accelerator.CPU
