"""The instance types of AWS that the platform knows: what each has, and what it costs."""

import difflib
from dataclasses import dataclass
from datetime import date
from typing import Literal

from .accelerators import Accelerator

PRICE_REGION = "us-east-1"
"""The region whose prices the table has; others differ, mostly upwards."""
PRICE_SOURCE = "Karpenter's generated prices (pkg/providers/pricing/zz_generated.pricing_aws.go)"
"""Who read them from AWS's price list."""
PRICE_DATE = date(2026, 2, 9)
"""When; the rows that were read again on 2026-07-20 were the same."""

QuotaFamily = Literal["Standard", "G and VT", "P"]
"""The vCPU quotas of EC2 are kept for families of instance types together."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance type."""

    type: str
    """AWS's name of it."""
    accelerator: Accelerator
    """The kind of its GPUs."""
    gpus: int
    """How many."""
    vcpus: int
    """Its virtual processors."""
    memory_gib: int
    """Its memory in GiB, of which the system and kubelet keep a part."""
    nvme_gb: int
    """Its own disks together in GB; 0 where it has none."""
    network_gbps: float
    """What its network carries at all times in Gbit/s; bursts are faster."""
    efa_cards: int
    """Network cards that take part in Elastic Fabric Adapter; 0 where there are none."""
    usd_per_hour: float | None
    """On demand with Linux in ``PRICE_REGION`` in US dollars; none where it isn't sold on demand,
    only as capacity blocks."""
    price_date: date = PRICE_DATE
    """When the price was read."""

    @property
    def family(self) -> str:
        """The name before the dot, such as ``g6e``."""
        return self.type.partition(".")[0]

    @property
    def quota_family(self) -> QuotaFamily:
        """Whose vCPU quota it counts against."""
        if not self.accelerator.is_gpu:
            return "Standard"
        return "P" if self.type.startswith("p") else "G and VT"

    @property
    def ami_type(self) -> str:
        """The kind of EKS-optimised image that it boots: with NVIDIA's driver where it has GPUs."""
        return "AL2023_x86_64_NVIDIA" if self.accelerator.is_gpu else "AL2023_x86_64_STANDARD"

    @property
    def gpu_memory_mib(self) -> int:
        """The memory of all its GPUs together, in MiB."""
        return self.gpus * self.accelerator.memory_mib


def _rows(
    accelerator: Accelerator,
    *rows: tuple[str, int, int, int, int, float, int, float | None],
    price_date: date = PRICE_DATE,
) -> dict[str, Instance]:
    return {
        name: Instance(
            type=name,
            accelerator=accelerator,
            gpus=gpus,
            vcpus=vcpus,
            memory_gib=memory_gib,
            nvme_gb=nvme_gb,
            network_gbps=network_gbps,
            efa_cards=efa_cards,
            usd_per_hour=usd_per_hour,
            price_date=price_date,
        )
        for name, gpus, vcpus, memory_gib, nvme_gb, network_gbps, efa_cards, usd_per_hour in rows
    }


# Sizes: Karpenter's reference page of instance types (2026-07-20, AWS's own DescribeInstanceTypes).
INSTANCES: dict[str, Instance] = {
    # type, GPUs, vCPUs, memory GiB, NVMe GB, network Gbit/s, EFA cards, USD per hour
    **_rows(
        Accelerator.CPU,
        ("t3.large", 0, 2, 8, 0, 0.512, 0, 0.0832),
        ("t3.xlarge", 0, 4, 16, 0, 1.024, 0, 0.1664),
        ("m6i.large", 0, 2, 8, 0, 0.781, 0, 0.096),
        ("m6i.xlarge", 0, 4, 16, 0, 1.562, 0, 0.192),
        ("m6i.2xlarge", 0, 8, 32, 0, 3.125, 0, 0.384),
        ("m6i.4xlarge", 0, 16, 64, 0, 6.25, 0, 0.768),
        ("m7i.large", 0, 2, 8, 0, 0.781, 0, 0.1008),
        ("m7i.xlarge", 0, 4, 16, 0, 1.562, 0, 0.2016),
        ("m7i.2xlarge", 0, 8, 32, 0, 3.125, 0, 0.4032),
        ("m7i.4xlarge", 0, 16, 64, 0, 6.25, 0, 0.8064),
    ),
    **_rows(
        Accelerator.A10G,
        ("g5.xlarge", 1, 4, 16, 250, 2.5, 0, 1.006),
        ("g5.2xlarge", 1, 8, 32, 450, 5, 0, 1.212),
        ("g5.4xlarge", 1, 16, 64, 600, 10, 0, 1.624),
        ("g5.8xlarge", 1, 32, 128, 900, 25, 1, 2.448),
        ("g5.12xlarge", 4, 48, 192, 3800, 40, 1, 5.672),
        ("g5.16xlarge", 1, 64, 256, 1900, 25, 1, 4.096),
        ("g5.24xlarge", 4, 96, 384, 3800, 50, 1, 8.144),
        ("g5.48xlarge", 8, 192, 768, 7600, 100, 1, 16.288),
    ),
    **_rows(
        Accelerator.L4,
        ("g6.xlarge", 1, 4, 16, 250, 2.5, 0, 0.8048),
        ("g6.2xlarge", 1, 8, 32, 450, 5, 0, 0.9776),
        ("g6.4xlarge", 1, 16, 64, 600, 10, 0, 1.3232),
        ("g6.8xlarge", 1, 32, 128, 900, 25, 1, 2.0144),
        ("g6.12xlarge", 4, 48, 192, 3760, 40, 1, 4.6016),
        ("g6.16xlarge", 1, 64, 256, 1880, 25, 1, 3.3968),
        ("g6.24xlarge", 4, 96, 384, 3760, 50, 1, 6.6752),
        ("g6.48xlarge", 8, 192, 768, 7520, 100, 1, 13.3504),
    ),
    **_rows(
        Accelerator.L40S,
        ("g6e.xlarge", 1, 4, 32, 250, 2.5, 0, 1.861),
        ("g6e.2xlarge", 1, 8, 64, 450, 5, 0, 2.24208),
        ("g6e.4xlarge", 1, 16, 128, 600, 20, 0, 3.00424),
        ("g6e.8xlarge", 1, 32, 256, 900, 25, 1, 4.52856),
        ("g6e.12xlarge", 4, 48, 384, 3800, 100, 1, 10.49264),
        ("g6e.16xlarge", 1, 64, 512, 1900, 35, 1, 7.57719),
        ("g6e.24xlarge", 4, 96, 768, 3800, 200, 2, 15.06559),
        ("g6e.48xlarge", 8, 192, 1536, 7600, 400, 4, 30.13118),
    ),
    **_rows(
        Accelerator.RTX_PRO_6000,
        ("g7e.2xlarge", 1, 8, 64, 1900, 50, 0, 3.36312),
        ("g7e.4xlarge", 1, 16, 128, 1900, 50, 0, 3.99816),
        ("g7e.8xlarge", 1, 32, 256, 1900, 100, 1, 5.26824),
        ("g7e.12xlarge", 2, 48, 512, 3800, 400, 1, 8.28608),
        ("g7e.24xlarge", 4, 96, 1024, 7600, 800, 2, 16.57216),
        ("g7e.48xlarge", 8, 192, 2048, 15200, 1600, 4, 33.14432),
    ),
    **_rows(Accelerator.A100_40GB, ("p4d.24xlarge", 8, 96, 1152, 8000, 400, 4, 21.957642)),
    **_rows(Accelerator.A100_80GB, ("p4de.24xlarge", 8, 96, 1152, 8000, 400, 4, 27.44705)),
    **_rows(
        Accelerator.H100,
        ("p5.4xlarge", 1, 16, 256, 3800, 100, 1, 6.88),
        ("p5.48xlarge", 8, 192, 2048, 30400, 3200, 32, 55.04),
    ),
    **_rows(
        Accelerator.H200,
        ("p5e.48xlarge", 8, 192, 2048, 30400, 3200, 32, None),
        ("p5en.48xlarge", 8, 192, 2048, 30400, 3200, 16, 63.296),
    ),
    **_rows(Accelerator.B200, ("p6-b200.48xlarge", 8, 192, 2048, 30400, 3200, 8, 113.9328)),
    **_rows(
        Accelerator.B300,
        ("p6-b300.48xlarge", 8, 192, 4096, 30400, 6400, 16, 142.416),
        price_date=date(2026, 7, 20),
    ),
}
"""Every instance type that the platform knows, by its name."""

_DEFAULT_TYPES = {
    Accelerator.CPU: "m7i.xlarge",
    # From 8 vCPUs on, images are pulled in parallel and an engine's start isn't held up.
    Accelerator.A10G: "g5.2xlarge",
    Accelerator.L4: "g6.2xlarge",
    # Four times the network of the next smaller one, for weights three times as large as an L4's.
    Accelerator.L40S: "g6e.4xlarge",
    Accelerator.RTX_PRO_6000: "g7e.2xlarge",
    Accelerator.A100_40GB: "p4d.24xlarge",
    Accelerator.A100_80GB: "p4de.24xlarge",
    Accelerator.H100: "p5.48xlarge",
    Accelerator.H200: "p5en.48xlarge",
    Accelerator.B200: "p6-b200.48xlarge",
    Accelerator.B300: "p6-b300.48xlarge",
}


def instance(type_name: str) -> Instance:
    """Return what is known of an instance type.

    Raises:
        ValueError: naming the type and those that were probably meant.
    """
    known = INSTANCES.get(type_name)
    if known is None:
        close = difflib.get_close_matches(type_name, INSTANCES, n=3, cutoff=0.5)
        raise ValueError(
            f"{type_name!r} isn't an instance type that the platform knows; did you mean "
            f"{' or '.join(close) or ', '.join(INSTANCES)}?"
        )
    return known


def instances_with(accelerator: Accelerator, gpus: int = 1) -> tuple[Instance, ...]:
    """Return the types that have at least ``gpus`` of an accelerator, the cheapest first.

    Those that aren't sold on demand come last.
    """
    found = [it for it in INSTANCES.values() if it.accelerator is accelerator and it.gpus >= gpus]
    return tuple(
        sorted(found, key=lambda it: (it.usd_per_hour is None, it.usd_per_hour or 0, it.type))
    )


def default_instance(accelerator: Accelerator) -> Instance:
    """Return the type that a pool of an accelerator has when its settings name none."""
    return INSTANCES[_DEFAULT_TYPES[accelerator]]
