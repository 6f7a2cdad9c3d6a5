"""What a worker computes on."""

from enum import StrEnum

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource that a node offers and a pod asks for."""
ACCELERATOR_LABEL = "llm-platform/accelerator"
"""On GPU nodes: the kind of their GPUs, as ``Accelerator`` spells it."""


class Accelerator(StrEnum):
    """The kinds of processor that a worker may ask for."""

    CPU = "cpu"
    L4 = "l4"
    A10G = "a10g"
    L40S = "l40s"
    RTX_PRO_6000 = "rtx-pro-6000"
    A100_40GB = "a100-40gb"
    A100_80GB = "a100-80gb"
    H100 = "h100"
    H200 = "h200"
    B200 = "b200"
    B300 = "b300"

    @property
    def is_gpu(self) -> bool:
        """Whether workers ask for GPUs."""
        return self is not Accelerator.CPU

    @property
    def memory_mib(self) -> int:
        """The memory of one GPU in MiB, as its driver counts it; 0 without a GPU.

        Less than the number in its name: an L4 is sold with 24 GB and has 22,888 MiB.
        """
        return _MEMORY_MIB.get(self, 0)


_MEMORY_MIB = {
    Accelerator.L4: 22_888,
    Accelerator.A10G: 22_888,
    Accelerator.L40S: 45_776,
    Accelerator.RTX_PRO_6000: 98_304,
    Accelerator.A100_40GB: 40_960,
    Accelerator.A100_80GB: 81_920,
    Accelerator.H100: 81_920,
    Accelerator.H200: 144_384,
    Accelerator.B200: 183_359,
    Accelerator.B300: 275_040,
}
"""Read in Karpenter's table of instance types (its label ``instance-gpu-memory``), 2026-07-20."""
