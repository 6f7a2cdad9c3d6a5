"""The price of an environment: sums worked out by hand, and nothing guessed."""

from datetime import date
from decimal import Decimal

import pytest
from pydantic import ValidationError

from planning.plan import AwsPlan, CacheNodes, DatabaseInstances, Disk, NodePool, ServerlessDatabase
from planning.price import Bill, Line, bill_of
from planning.price_data import PUBLISHED
from planning.price_list import HOURS_PER_MONTH, Price, PriceList
from planning.price_table import as_output, as_text

PLAIN_DISK = Disk(gib=100)


def pool(**changes: object) -> NodePool:
    whole: dict[str, object] = {
        "name": "l40s",
        "instance_types": ("g6e.4xlarge",),
        "min_nodes": 2,
        "max_nodes": 8,
        "disk": PLAIN_DISK,
    }
    return NodePool.model_validate({**whole, **changes})


def plan(**changes: object) -> AwsPlan:
    whole = {"environment": "prod-aws", "region": "us-east-1", "clusters": 0}
    return AwsPlan.model_validate({**whole, **changes})


def line(bill: Bill, item: str) -> Line:
    (found,) = [line for line in bill.lines if line.item == item]
    return found


def test_a_month_has_the_hours_of_awss_own_calculator() -> None:
    assert HOURS_PER_MONTH == 365 * 24 / 12


def test_a_cluster_costs_its_control_plane() -> None:
    bill = bill_of(plan(clusters=1))
    # 0.10 x 730
    assert (bill.idle, bill.maximum) == (Decimal(73), Decimal(73))


def test_a_cluster_that_is_there_already_costs_nothing_more() -> None:
    assert bill_of(plan()).lines == ()


def test_a_pool_costs_its_warm_floor_and_at_most_its_maximum() -> None:
    bill = bill_of(plan(node_pools=(pool(),)))
    nodes, disks = line(bill, "l40s: g6e.4xlarge"), line(bill, "l40s: 100 GiB of gp3")
    # 3.00424 x 730 = 2193.0952 a node; 100 x 0.08 = 8 a disk
    assert nodes.idle_per_month == Decimal("4386.1904")
    assert nodes.maximum_per_month == Decimal("17544.7616")
    assert (disks.idle_per_month, disks.maximum_per_month) == (Decimal(16), Decimal(64))
    assert bill.idle == Decimal("4402.1904")
    assert bill.maximum == Decimal("17608.7616")


def test_a_fast_disk_costs_what_it_has_above_what_is_free() -> None:
    disk = Disk(gib=200, iops=16000, throughput_mib=1000)
    bill = bill_of(plan(node_pools=(pool(disk=disk, min_nodes=1, max_nodes=1),)))
    # 200 x 0.08 = 16; 13000 x 0.005 = 65; 875 x 0.04 = 35; 2193.0952 the node
    assert bill.idle == Decimal(16) + 65 + 35 + Decimal("2193.0952")


def test_a_pool_without_a_floor_costs_nothing_while_idle() -> None:
    bill = bill_of(plan(node_pools=(pool(min_nodes=0),)))
    assert bill.idle == 0
    assert bill.maximum > 0


def test_the_maximum_of_a_pool_is_that_of_its_dearest_type() -> None:
    types = ("g6e.4xlarge", "g6e.8xlarge", "g6e.2xlarge")
    bill = bill_of(plan(node_pools=(pool(instance_types=types, min_nodes=1, max_nodes=2),)))
    nodes = line(bill, "l40s: g6e.4xlarge")
    # 3.00424 x 730; 2 x 4.52856 x 730
    assert nodes.idle_per_month == Decimal("2193.0952")
    assert nodes.maximum_per_month == Decimal("6611.6976")
    assert nodes.note == "the maximum as g6e.8xlarge"


def test_spot_counts_as_on_demand_and_says_so() -> None:
    bill = bill_of(plan(node_pools=(pool(capacity="spot"),)))
    assert "this is the one on demand" in line(bill, "l40s: g6e.4xlarge").note
    assert bill.maximum == bill_of(plan(node_pools=(pool(),))).maximum


def test_what_is_reserved_is_paid_while_idle_too() -> None:
    bill = bill_of(plan(node_pools=(pool(capacity="reservation", min_nodes=0, max_nodes=2),)))
    # 2 x 3.00424 x 730
    assert line(bill, "l40s: g6e.4xlarge").idle_per_month == Decimal("4386.1904")
    assert bill.idle == Decimal("4386.1904"), "the disks come with the nodes"


def test_a_capacity_block_has_no_price_by_the_hour() -> None:
    block = pool(name="h100", instance_types=("p5.48xlarge",), capacity="capacity-block")
    bill = bill_of(plan(node_pools=(block,)))
    assert bill.without_price == (
        "no price known for h100: capacity block of p5.48xlarge in us-east-1",
    )
    assert "up front" in as_text(bill)


def test_a_type_that_is_not_sold_on_demand_is_said_to_have_no_price() -> None:
    bill = bill_of(plan(node_pools=(pool(name="h200", instance_types=("p5e.48xlarge",)),)))
    assert bill.without_price == ("no price known for h200: p5e.48xlarge in us-east-1",)
    # Only the disks: 2 x 100 x 0.08 and 8 x 100 x 0.08.
    assert (bill.idle, bill.maximum) == (Decimal(16), Decimal(64))


def test_a_dearer_type_without_a_price_is_not_passed_over() -> None:
    types = ("p5en.48xlarge", "p5e.48xlarge")
    bill = bill_of(plan(node_pools=(pool(name="h200", instance_types=types),)))
    assert bill.without_price == ("no price known for h200: p5e.48xlarge in us-east-1",)


def test_a_network_costs_per_zone() -> None:
    bill = bill_of(plan(nat_gateways=3, endpoints=13, endpoint_zones=3))
    # 3 x (0.045 + 0.005) x 730 = 109.50; 39 x 0.01 x 730 = 284.70
    assert bill.idle == bill.maximum == Decimal("394.20")
    assert [line.item for line in bill.lines if line.by_use] == [
        "data over NAT gateways",
        "data over interface endpoints",
    ]


def test_a_serverless_database_costs_between_its_limits() -> None:
    database = ServerlessDatabase(min_acu=Decimal("0.5"), max_acu=Decimal(8), instances=2)
    bill = bill_of(plan(database=database))
    # 2 x 0.5 x 0.12 x 730; 2 x 8 x 0.12 x 730
    assert (bill.idle, bill.maximum) == (Decimal("87.60"), Decimal("1401.60"))


def test_a_database_on_instances_costs_the_same_all_month() -> None:
    bill = bill_of(plan(database=DatabaseInstances(instance_class="db.r8g.large", instances=2)))
    # 2 x 0.276 x 730
    assert bill.idle == bill.maximum == Decimal("402.96")


def test_a_class_without_a_price_is_said() -> None:
    bill = bill_of(plan(database=DatabaseInstances(instance_class="db.x9g.large")))
    assert bill.without_price == ("no price known for Aurora db.x9g.large in us-east-1",)


def test_cache_balancer_and_keys_add_up() -> None:
    cache = CacheNodes(node_type="cache.t4g.small", nodes=2)
    bill = bill_of(plan(cache=cache, load_balancer="network", keys=4))
    # 2 x 0.0256 x 730 = 37.376; 0.0225 x 730 = 16.425; 4
    assert bill.idle == bill.maximum == Decimal("57.801")


def test_what_is_paid_by_use_is_in_no_sum() -> None:
    bill = bill_of(plan(queues=True, buckets=("weights",)))
    assert (bill.idle, bill.maximum) == (0, 0)
    text = as_text(bill)
    assert "SQS requests (0.4 per million requests, the first million is free)" in text
    assert "S3 storage, weights (no price known)" in text


def test_what_has_no_price_here_is_said_all_the_same() -> None:
    bill = bill_of(plan(others=("FSx for Lustre, 2.4 TiB",), secrets=3))
    assert bill.without_price == (
        "no price known for Secrets Manager secret in us-east-1",
        "no price known for FSx for Lustre, 2.4 TiB in us-east-1",
    )
    assert "no price known for FSx for Lustre, 2.4 TiB in us-east-1" in as_text(bill)


def test_another_regions_prices_are_said_to_be_anothers() -> None:
    bill = bill_of(plan(clusters=1, region="eu-west-1"))
    assert bill.elsewhere == ("us-east-1",)
    assert "us-east-1's where eu-west-1's aren't known" in as_text(bill)
    assert as_output(bill)["prices_of_regions"] == ["us-east-1"]
    assert bill_of(plan(clusters=1)).elsewhere == ()


def test_a_price_of_ones_own_wins() -> None:
    agreed = Price(
        usd=Decimal("0.08"),
        per="hour",
        region="eu-west-1",
        source="our contract",
        read=date(2026, 11, 1),
    )
    bill = bill_of(
        plan(clusters=1, region="eu-west-1"), PUBLISHED.with_prices({"eks.cluster": agreed})
    )
    # 0.08 x 730
    assert bill.idle == Decimal("58.40")
    assert bill.elsewhere == ()


def test_without_any_prices_the_bill_says_so() -> None:
    bill = bill_of(plan(clusters=1), PriceList({}, "us-east-1"))
    assert bill.without_price == ("no price known for EKS control plane in us-east-1",)
    assert "No price is known of anything here" in as_text(bill)


def test_every_price_says_who_published_it_and_when() -> None:
    for (item, region), price in PUBLISHED.prices.items():
        assert price.region == region
        assert price.source, item
        assert date(2020, 1, 1) < price.read < date(2030, 1, 1), item
        assert price.usd > 0, item


def test_the_table_lines_up_and_the_output_has_the_same_sums() -> None:
    bill = bill_of(plan(clusters=1, node_pools=(pool(),), keys=1))
    head, *table = as_text(bill).splitlines()
    assert head == "Price of prod-aws in us-east-1: US dollars, 730 hours a month"
    rows = table[: 2 + 4]
    assert len({len(row) for row in rows}) == 1
    # 73 + 4402.1904 + 1; 73 + 17608.7616 + 1
    assert rows[-1].split() == ["together", "4,476.19", "17,682.76"]
    output = as_output(bill)
    assert output["idle_per_month"] == 4476.19
    assert output["maximum_per_month"] == 17682.76
    assert [it["item"] for it in output["lines"]] == [it.item for it in bill.lines]


def test_a_pool_whose_maximum_is_below_its_floor_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_nodes=1 is below min_nodes=2 of 'l40s'"):
        pool(max_nodes=1)


def test_a_database_whose_maximum_is_below_its_floor_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_acu=1 is below min_acu=2"):
        ServerlessDatabase(min_acu=Decimal(2), max_acu=Decimal(1))
