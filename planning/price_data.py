"""Published prices of AWS: each with its region, who published it, and when.

Prices change, and every price here was read by somebody else before us; the console's bill is the
judge. Two kinds of sources: what AWS itself published (its price list, its own repositories), and
pages that say that they quote AWS's price page of a month. What could not be found with a date
isn't here, and the bill says so.
"""

from datetime import date
from decimal import Decimal

from components.domain.aws_instances import INSTANCES, PRICE_REGION, PRICE_SOURCE

from .price_list import Price, PriceList, Unit

# AWS's own repository of skills for agents; its static prices for when the price list is offline.
_AWS_TOOLKIT = "https://raw.githubusercontent.com/aws/agent-toolkit-for-aws/main/skills"
_AURORA = (
    f"{_AWS_TOOLKIT}/specialized-skills/database-skills/amazon-aurora-mysql/scripts/"
    "acu_calculator.py (the same for PostgreSQL)"
)
_AURORA_DATE = date(2026, 3, 28)
_EBS = "https://aws.amazon.com/ebs/pricing/ as quoted by https://www.saisci.com/aws/"
_EBS_DATE = date(2021, 2, 4)
_VALKEY = (
    "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonElastiCache/current/us-east-1/"
    "index.json (Valkey, NodeUsage) as read into a public table of fallback prices"
)
_VALKEY_DATE = date(2026, 10, 2)


def _of_service(
    source: str, read: date, *rows: tuple[str, str, Unit]
) -> dict[tuple[str, str], Price]:
    """Prices that one source has; each row is the item, US dollars, and what they are for."""
    return {
        (item, PRICE_REGION): Price(
            usd=Decimal(usd), per=per, region=PRICE_REGION, source=source, read=read
        )
        for item, usd, per in rows
    }


def _of_instances() -> dict[tuple[str, str], Price]:
    return {
        (f"ec2.{it.type}", PRICE_REGION): Price(
            usd=Decimal(str(it.usd_per_hour)),
            per="hour",
            region=PRICE_REGION,
            source=PRICE_SOURCE,
            read=it.price_date,
        )
        for it in INSTANCES.values()
        if it.usd_per_hour is not None
    }


PUBLISHED = PriceList(
    {
        **_of_instances(),
        **_of_service(
            "https://aws.amazon.com/eks/pricing/ as quoted by "
            "https://cloudburn.io/blog/amazon-eks-pricing",
            date(2026, 4, 1),
            ("eks.cluster", "0.10", "hour"),
        ),
        **_of_service(
            "https://aws.amazon.com/vpc/pricing/ as quoted by "
            "https://cloudburn.io/blog/aws-nat-gateway-pricing",
            date(2026, 2, 24),
            ("nat.gateway", "0.045", "hour"),
            ("nat.data", "0.045", "GB"),
            ("ipv4", "0.005", "hour"),
        ),
        **_of_service(
            "https://aws.amazon.com/privatelink/pricing/ as quoted by "
            "https://awsnegotiations.com/privatelink-cost-analysis.html",
            date(2026, 5, 1),
            ("endpoint.zone", "0.01", "hour"),
            ("endpoint.data", "0.01", "GB"),
        ),
        **_of_service(
            "https://aws.amazon.com/elasticloadbalancing/pricing/ as quoted by "
            "https://awsnegotiations.com/elastic-load-balancer-cost.html",
            date(2026, 5, 1),
            ("balancer.application", "0.0225", "hour"),
            ("balancer.application.units", "0.008", "capacity unit and hour"),
            ("balancer.network", "0.0225", "hour"),
            ("balancer.network.units", "0.006", "capacity unit and hour"),
        ),
        **_of_service(
            "https://aws.amazon.com/kms/pricing/ as quoted by "
            "https://cloudburn.io/blog/aws-kms-pricing",
            date(2026, 3, 14),
            ("kms.key", "1.00", "month"),
        ),
        **_of_service(
            "https://aws.amazon.com/sqs/pricing/ as quoted by "
            "https://cloudburn.io/blog/amazon-sqs-pricing",
            date(2026, 3, 14),
            ("sqs.requests", "0.40", "million requests"),
        ),
        **_of_service(
            f"{_AWS_TOOLKIT}/core-skills/aws-billing-and-cost-management/references/"
            "ebs-optimization.md",
            date(2026, 3, 1),  # "early 2026" is all that it says
            ("ebs.gp3.storage", "0.08", "GiB and month"),
        ),
        # Above the 3,000 operations and 125 MB per second that every gp3 volume has for nothing.
        **_of_service(
            _EBS,
            _EBS_DATE,
            ("ebs.gp3.iops", "0.005", "month"),
            ("ebs.gp3.throughput", "0.04", "month"),
        ),
        **_of_service(
            _AURORA,
            _AURORA_DATE,
            ("aurora.acu", "0.12", "hour"),
            ("aurora.storage", "0.10", "GB and month"),
            ("aurora.db.t4g.medium", "0.073", "hour"),
            ("aurora.db.t4g.large", "0.146", "hour"),
            ("aurora.db.r6g.large", "0.260", "hour"),
            ("aurora.db.r6g.xlarge", "0.519", "hour"),
            ("aurora.db.r6g.2xlarge", "1.038", "hour"),
            ("aurora.db.r7g.large", "0.276", "hour"),
            ("aurora.db.r7g.xlarge", "0.553", "hour"),
            ("aurora.db.r7g.2xlarge", "1.106", "hour"),
            ("aurora.db.r8g.large", "0.276", "hour"),
            ("aurora.db.r8g.xlarge", "0.552", "hour"),
            ("aurora.db.r8g.2xlarge", "1.104", "hour"),
        ),
        **_of_service(
            _VALKEY,
            _VALKEY_DATE,
            ("valkey.cache.t4g.micro", "0.0128", "hour"),
            ("valkey.cache.t4g.small", "0.0256", "hour"),
            ("valkey.cache.t4g.medium", "0.052", "hour"),
            ("valkey.cache.m7g.large", "0.1264", "hour"),
            ("valkey.cache.m7g.xlarge", "0.252", "hour"),
            ("valkey.cache.r7g.large", "0.1752", "hour"),
            ("valkey.cache.r7g.xlarge", "0.3496", "hour"),
            ("valkey.cache.r8g.large", "0.1756", "hour"),
            ("valkey.cache.r8g.xlarge", "0.3511", "hour"),
        ),
    },
    reference=PRICE_REGION,
)
"""The prices that the platform knows."""
