"""From an environment's settings to what of them costs money."""

from typing import Any

from planning.plan import AwsPlan
from planning.price import bill_of
from planning.wishes import plan_from

SETTINGS: dict[str, Any] = {
    "account": {"id": "012345678901", "region": "us-east-1"},
    "network": {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
    "cluster": {"deployer_arn": "arn:aws:iam::012345678901:role/deployer"},
    "gpu_pools": {
        "l40s": {"accelerator": "l40s", "warm_floor": 2, "max_nodes": 8},
        "h100": {
            "accelerator": "h100",
            "instance_types": ["p5.48xlarge"],
            "max_nodes": 1,
            "capacity": [
                {"kind": "spot", "max_nodes": 3},
                {
                    "kind": "reservation",
                    "reservation_id": "cr-1",
                    "zone": "us-east-1b",
                    "nodes": 2,
                },
            ],
        },
    },
}


def planned(overflow: tuple[dict[str, Any], ...] = (), **changes: Any) -> AwsPlan:
    from components.aws.database import SIZES as DATABASES
    from components.aws.foundation_args import AwsWishes
    from components.aws.overflow import OverflowPool
    from components.aws.redis import SIZES as REDIS

    return plan_from(
        "prod-aws",
        "us-east-1",
        AwsWishes.model_validate({**SETTINGS, **changes}),
        database=DATABASES["prod"],
        redis=REDIS["prod"],
        keys=5,
        secrets=3,
        overflow=[OverflowPool.model_validate(it) for it in overflow],
    )


def test_settings_of_a_foundation_become_a_plan() -> None:
    plan = planned()
    assert (plan.clusters, plan.nat_gateways, plan.endpoints, plan.endpoint_zones) == (1, 3, 13, 3)
    shown = [(it.name, it.min_nodes, it.max_nodes, it.capacity) for it in plan.node_pools]
    assert shown == [
        ("system", 2, 6, "on-demand"),
        ("l40s", 2, 8, "on-demand"),
        ("h100 (spot)", 0, 3, "spot"),
        ("h100 (reservation)", 0, 2, "reservation"),
    ]
    assert plan.node_pools[1].instance_types == ("g6e.4xlarge",)
    assert plan.node_pools[1].disk.throughput_mib == 600


def test_the_bill_of_settings_has_a_price_for_all_but_what_is_known_to_lack_one() -> None:
    bill = bill_of(planned())
    assert {said.removeprefix("no price known for ") for said in bill.without_price} == {
        "Secrets Manager secret in us-east-1",
        "S3 storage, weights in us-east-1",
        "S3 storage, results in us-east-1",
        "S3 storage, state in us-east-1",
    }
    # The reserved nodes are paid while idle: 2 x 55.04 x 730 = 80358.40 alone.
    assert bill.idle > 80358


def test_what_is_there_already_costs_nothing_more() -> None:
    subnets = {"us-east-1a": "subnet-1", "us-east-1b": "subnet-2"}
    existing = {"vpc_id": "vpc-1", "cidr": "10.0.0.0/16", "private_subnets": subnets}
    plan = planned(network={"existing": existing}, cluster={"existing": {"name": "theirs"}})
    assert (plan.clusters, plan.nat_gateways, plan.endpoints) == (0, 0, 0)


def test_overflow_is_priced_with_the_type_that_costs_most_for_as_many_gpus() -> None:
    pool = {
        "name": "burst",
        "accelerator": "l40s",
        "instance_types": ["g6e.xlarge", "g6e.16xlarge", "g6e.12xlarge"],
        "max_gpus": 4,
    }
    above = planned(overflow=(pool,)).node_pools[-1]
    # 4 x 1.861, 4 x 7.57719, 1 x 10.49264
    assert (above.instance_types, above.min_nodes, above.max_nodes) == (("g6e.16xlarge",), 0, 4)
