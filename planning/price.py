"""What an AWS environment costs a month: its idle floor, and the most that its limits allow.

Pure functions: a plan goes in, a bill comes out. Nothing is guessed. What has no known price, and
what is paid by use, stands in the bill without an amount, and the sums say that they lack it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from .plan import (
    GP3_IOPS,
    GP3_THROUGHPUT_MIB,
    AwsPlan,
    NodePool,
    ServerlessDatabase,
)
from .price_data import PUBLISHED
from .price_list import Price, PriceList


@dataclass(frozen=True, kw_only=True)
class Line:
    """One item of a bill."""

    item: str
    """What it is, in words."""
    idle: Decimal
    """How many there are when nobody asks anything."""
    maximum: Decimal
    """How many there may be."""
    price: Price | None
    """What one costs; none where no price is known."""
    dearest: Price | None = None
    """What one costs at most, where that isn't ``price``."""
    by_use: bool = False
    """Whether it is paid by use, so that no month has an amount before it is over."""
    note: str = ""
    """What to know about it."""

    @property
    def idle_per_month(self) -> Decimal | None:
        """US dollars of an idle month; nothing where that can't be said."""
        return self._amount(self.idle, self.price)

    @property
    def maximum_per_month(self) -> Decimal | None:
        """US dollars of a month at the maximum; nothing where that can't be said."""
        return self._amount(self.maximum, self.dearest or self.price)

    def _amount(self, quantity: Decimal, price: Price | None) -> Decimal | None:
        if self.by_use:
            return None
        if quantity == 0:
            return Decimal(0)
        each = price.per_month if price else None
        return None if each is None else quantity * each


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a plan costs."""

    environment: str
    region: str
    lines: tuple[Line, ...]

    @property
    def idle(self) -> Decimal:
        """US dollars of an idle month, of all that has a known amount."""
        return sum((line.idle_per_month or Decimal(0) for line in self.lines), Decimal(0))

    @property
    def maximum(self) -> Decimal:
        """US dollars of a month at the maximum, of all that has a known amount."""
        return sum((line.maximum_per_month or Decimal(0) for line in self.lines), Decimal(0))

    @property
    def without_price(self) -> tuple[str, ...]:
        """What the sums lack because no price is known, each said in words."""
        return tuple(
            f"no price known for {line.item} in {self.region}"
            for line in self.lines
            if line.price is None and line.maximum
        )

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Regions, other than its own, whose prices were used because its own aren't known."""
        return tuple(sorted({price.region for price in self.prices} - {self.region}))

    @property
    def prices(self) -> tuple[Price, ...]:
        """Every price that was used."""
        used = [(line.price, line.dearest) for line in self.lines]
        return tuple(price for pair in used for price in pair if price)


def bill_of(plan: AwsPlan, prices: PriceList = PUBLISHED) -> Bill:
    """Return what a plan costs a month.

    Args:
        plan: The environment.
        prices: What to look prices up in; ``PUBLISHED.with_prices(…)`` adds one's own.
    """
    lines = _Lines(plan, prices)
    return Bill(environment=plan.environment, region=plan.region, lines=tuple(lines.all()))


@dataclass(frozen=True)
class _Lines:
    plan: AwsPlan
    prices: PriceList

    def all(self) -> Iterator[Line]:
        plan = self.plan
        yield from self._fixed("EKS control plane", "eks.cluster", plan.clusters)
        for pool in plan.node_pools:
            yield from self._nodes(pool)
        yield from self._network()
        yield from self._database()
        if plan.cache:
            name = f"ElastiCache {plan.cache.node_type}, Valkey"
            yield from self._fixed(name, f"valkey.{plan.cache.node_type}", plan.cache.nodes)
        yield from self._load_balancer()
        yield from self._fixed("KMS key", "kms.key", plan.keys, "and its requests")
        yield from self._fixed("Secrets Manager secret", "secrets.secret", plan.secrets)
        for bucket in plan.buckets:
            yield self._by_use(f"S3 storage, {bucket}", "s3.storage")
        if plan.queues:
            yield self._by_use("SQS requests", "sqs.requests", "the first million is free")
        for other in plan.others:
            yield self._line(other, None, 1, 1)

    def _nodes(self, pool: NodePool) -> Iterator[Line]:
        first = pool.instance_types[0]
        if pool.capacity == "capacity-block":
            note = "paid up front, at its offering's price"
            yield self._line(f"{pool.name}: capacity block of {first}", None, 0, 1, note)
        else:
            dearest = self._dearest(pool)
            paid = pool.max_nodes if pool.capacity == "reservation" else pool.min_nodes
            yield Line(
                item=f"{pool.name}: {first}",
                idle=Decimal(paid),
                maximum=Decimal(pool.max_nodes),
                price=self._price(f"ec2.{first}"),
                dearest=self._price(f"ec2.{dearest}"),
                note=_about(pool, dearest),
            )
            for name in pool.instance_types[1:]:
                if self._price(f"ec2.{name}") is None:
                    yield self._line(f"{pool.name}: {name}", None, 0, 1, "in place of others")
        yield from self._disks(pool)

    def _dearest(self, pool: NodePool) -> str:
        def dollars(name: str) -> Decimal:
            price = self._price(f"ec2.{name}")
            return price.usd if price else Decimal(0)

        return max(pool.instance_types, key=dollars)

    def _disks(self, pool: NodePool) -> Iterator[Line]:
        disk = pool.disk
        amounts = {
            f"{disk.gib} GiB of gp3": ("ebs.gp3.storage", disk.gib),
            "IOPS above 3,000": ("ebs.gp3.iops", disk.iops - GP3_IOPS),
            "MiB/s above 125": ("ebs.gp3.throughput", disk.throughput_mib - GP3_THROUGHPUT_MIB),
        }
        for name, (item, each) in amounts.items():
            low, high = each * pool.min_nodes, each * pool.max_nodes
            if high:
                yield self._line(f"{pool.name}: {name}", item, low, high)

    def _network(self) -> Iterator[Line]:
        plan = self.plan
        yield from self._fixed("NAT gateway", "nat.gateway", plan.nat_gateways)
        yield from self._fixed("public address of a NAT gateway", "ipv4", plan.nat_gateways)
        if plan.nat_gateways:
            yield self._by_use("data over NAT gateways", "nat.data")
        each = plan.endpoints * plan.endpoint_zones
        yield from self._fixed("interface endpoint in a zone", "endpoint.zone", each)
        if each:
            yield self._by_use("data over interface endpoints", "endpoint.data")

    def _database(self) -> Iterator[Line]:
        database = self.plan.database
        if isinstance(database, ServerlessDatabase):
            low, high = (
                units * database.instances for units in (database.min_acu, database.max_acu)
            )
            yield self._line("Aurora capacity unit", "aurora.acu", low, high)
        elif database:
            item = f"aurora.{database.instance_class}"
            yield from self._fixed(f"Aurora {database.instance_class}", item, database.instances)
        if database:
            yield self._by_use("Aurora storage", "aurora.storage")

    def _load_balancer(self) -> Iterator[Line]:
        kind = self.plan.load_balancer
        if kind:
            yield from self._fixed(f"{kind} load balancer", f"balancer.{kind}", 1)
            item = f"balancer.{kind}.units"
            yield self._by_use("capacity units of the load balancer", item)

    def _price(self, item: str | None) -> Price | None:
        return self.prices.find(item, self.plan.region) if item else None

    def _fixed(self, name: str, item: str, number: int, note: str = "") -> Iterator[Line]:
        if number:
            yield self._line(name, item, number, number, note)

    def _line(
        self, name: str, item: str | None, idle: Decimal | int, maximum: Decimal | int,
        note: str = "",
    ) -> Line:  # fmt: skip
        return Line(
            item=name,
            idle=Decimal(idle),
            maximum=Decimal(maximum),
            price=self._price(item),
            note=note,
        )

    def _by_use(self, name: str, item: str, note: str = "") -> Line:
        return Line(
            item=name,
            idle=Decimal(0),
            maximum=Decimal(1),
            price=self._price(item),
            by_use=True,
            note=note,
        )


_ABOUT = {
    "spot": "spot's price changes by the hour; this is the one on demand",
    "reservation": "paid whether they run or not",
}


def _about(pool: NodePool, dearest: str) -> str:
    parts = [_ABOUT.get(pool.capacity, "")]
    if dearest != pool.instance_types[0]:
        parts.append(f"the maximum as {dearest}")
    return "; ".join(part for part in parts if part)
