"""Writes the bills in docs/aws.md: ``python docs/bills.py`` (``--check`` only compares).

The plans here have the sizes `dev` and `prod` of the components; the bill of one's own settings is
an output of its foundation, and shown by its preview.
"""

import re
import sys
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "aws.md"
sys.path.insert(0, str(ROOT))

from planning.plan import (  # noqa: E402 - found once the root is on the path
    AwsPlan,
    CacheNodes,
    Disk,
    NodePool,
    ServerlessDatabase,
)
from planning.price import bill_of  # noqa: E402
from planning.price_table import as_text  # noqa: E402

_GPU_DISK = Disk(gib=100, throughput_mib=600)


def _system(most: int) -> NodePool:
    return NodePool(
        name="system",
        instance_types=("m7i.large",),
        min_nodes=2,
        max_nodes=most,
        disk=Disk(gib=100),
    )


def _pool(name: str, kind: str, least: int, most: int) -> NodePool:
    return NodePool(
        name=name, instance_types=(kind,), min_nodes=least, max_nodes=most, disk=_GPU_DISK
    )


PLANS = (
    AwsPlan(
        environment="dev-aws",
        region="us-east-1",
        node_pools=(_system(3), _pool("l4", "g6.2xlarge", 0, 1)),
        nat_gateways=1,
        database=ServerlessDatabase(min_acu=Decimal("0.5"), max_acu=Decimal(4), instances=1),
        cache=CacheNodes(node_type="cache.t4g.micro", nodes=1),
        load_balancer="network",
        keys=5,
        secrets=3,
        buckets=("weights", "results", "state"),
        queues=True,
    ),
    AwsPlan(
        environment="prod-aws",
        region="us-east-1",
        node_pools=(
            _system(6),
            _pool("l40s", "g6e.4xlarge", 2, 8),
            _pool("h100", "p5.48xlarge", 1, 2),
        ),
        nat_gateways=3,
        endpoints=13,
        endpoint_zones=3,
        database=ServerlessDatabase(min_acu=Decimal(1), max_acu=Decimal(16), instances=2),
        cache=CacheNodes(node_type="cache.m7g.large", nodes=2),
        load_balancer="network",
        keys=5,
        secrets=3,
        buckets=("weights", "results", "state"),
        queues=True,
    ),
)
"""The examples of the page."""


def merged(page: str) -> str:
    """Return the page with its bills worked out anew."""
    for plan in PLANS:
        begin, end = f"<!-- bill: {plan.environment} -->", "<!-- /bill -->"
        block = f"{begin}\n```\n{as_text(bill_of(plan))}\n```\n{end}"
        page = re.sub(
            f"{re.escape(begin)}.*?{re.escape(end)}", lambda _, new=block: new, page, flags=re.S
        )
    return page


def main() -> int:
    """Write the page, or say that it isn't current."""
    page = PAGE.read_text()
    new = merged(page)
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
