"""What a worker computes on."""

from dataclasses import dataclass
from enum import StrEnum

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource that a node offers and a pod asks for."""

_GIB = 1024**3


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


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """What sizing needs to know of a GPU."""

    usable_memory_bytes: int
    """Memory of one GPU that an engine can fill: the driver and CUDA keep the rest."""


GPUS: dict[Accelerator, GpuFacts] = {
    Accelerator.L4: GpuFacts(usable_memory_bytes=22 * _GIB),
    Accelerator.A10G: GpuFacts(usable_memory_bytes=22 * _GIB),
    Accelerator.L40S: GpuFacts(usable_memory_bytes=44 * _GIB),
    Accelerator.A100_80GB: GpuFacts(usable_memory_bytes=79 * _GIB),
    Accelerator.H100: GpuFacts(usable_memory_bytes=79 * _GIB),
}
