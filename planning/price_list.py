"""A price and where it comes from, and a list of them to look things up in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

HOURS_PER_MONTH = 730
"""365 days x 24 hours / 12 months, as AWS's own calculator has it (its pricing assumptions,
https://aws.amazon.com/calculator/calculator-assumptions, read 2026-11)."""

Unit = Literal[
    "hour",
    "month",
    "GB",
    "GB and month",
    "GiB and month",
    "million requests",
    "capacity unit and hour",
]
"""What a price is for."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one unit costs, and who says so."""

    usd: Decimal
    """US dollars, on demand, without taxes and discounts."""
    per: Unit
    """For what."""
    region: str
    """Where."""
    source: str
    """Who published it."""
    read: date
    """When."""

    @property
    def per_month(self) -> Decimal | None:
        """What one costs that is there the whole month; nothing for what is paid by use."""
        if self.per == "hour":
            return self.usd * HOURS_PER_MONTH
        return self.usd if self.per in {"month", "GiB and month"} else None


@dataclass(frozen=True)
class PriceList:
    """Prices by item and region.

    Args:
        prices: Each by its item, such as ``ec2.g6e.xlarge``, and its region.
        reference: The region whose prices stand in where a region has none of its own.
    """

    prices: Mapping[tuple[str, str], Price]
    reference: str

    def find(self, item: str, region: str) -> Price | None:
        """Return what the item costs in the region, or else in the reference region.

        The price says which of them it is; nothing where neither has one.
        """
        return self.prices.get((item, region)) or self.prices.get((item, self.reference))

    def with_prices(self, own: Mapping[str, Price]) -> "PriceList":
        """Return this list with prices of one's own by item, which win over published ones.

        For a negotiated price, or a region that the published ones don't cover.
        """
        mine = {(item, price.region): price for item, price in own.items()}
        return PriceList({**self.prices, **mine}, self.reference)
