"""A plan from the settings of an environment's two stacks."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.errors import DeployError
from deploy.preflight.plan import PreflightPlan, WantedNodes
from deploy.preflight.reading import read

SETTINGS: dict[str, Any] = {
    "cloud": "aws",
    "account": {"id": "012345678901", "region": "eu-west-1"},
    "network": {"zones": ["eu-west-1a", "eu-west-1b", "eu-west-1c"]},
    "cluster": {"version": "1.35", "deployer_arn": "arn:aws:iam::012345678901:role/deployer"},
    "gpu_pools": {
        "l40s": {"accelerator": "l40s", "warm_floor": 2, "max_nodes": 8},
        "h100": {
            "accelerator": "h100",
            "instance_types": ["p5.48xlarge"],
            "warm_floor": 1,
            "max_nodes": 4,
            "capacity": [
                {
                    "kind": "capacity-block",
                    "reservation_id": "cr-1",
                    "zone": "eu-west-1b",
                    "nodes": 2,
                },
                {"kind": "on-demand", "max_nodes": 3},
                {"kind": "spot"},
            ],
        },
    },
}


def written(folder: Path, platform: dict[str, Any] | None = None, **settings: Any) -> Path:
    for layer, values in (("foundation", settings), ("platform", platform or {})):
        config = {f"llm-platform:{name}": value for name, value in values.items()}
        text = yaml.safe_dump({"config": config}, sort_keys=False)
        (folder / f"Pulumi.{layer}.prod-aws.yaml").write_text(text)
    return folder


def plan_of(folder: Path, **changes: Any) -> PreflightPlan:
    return read("prod-aws", written(folder, **{**SETTINGS, **changes}))


def test_the_settings_of_a_foundation_become_a_plan(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert plan.region == "eu-west-1"
    assert plan.account_id == "012345678901"
    assert plan.zones == ("eu-west-1a", "eu-west-1b", "eu-west-1c")
    assert (plan.nat_gateways, plan.endpoints) == (3, 13)
    assert plan.cluster == "prod-aws"
    assert plan.private_api
    assert plan.makes_cluster
    assert plan.makes_network
    assert plan.gateway_domain is None


def test_each_way_to_buy_nodes_is_a_group_of_its_own(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    system, l40s, block, on_demand, spot = plan.nodes
    assert (system.name, system.instance_types) == ("system", ("m7i.large",))
    assert (system.least, system.most) == (2, 6)
    assert l40s == WantedNodes(
        name="l40s",
        instance_types=("g6e.4xlarge",),
        zones=plan.zones,
        least=2,
        most=8,
    )
    assert block == WantedNodes(
        name="h100 (capacity-block)",
        instance_types=("p5.48xlarge",),
        zones=("eu-west-1b",),
        least=0,
        most=2,
        capacity="capacity-block",
        reservation="cr-1",
    )
    assert (on_demand.least, on_demand.most) == (1, 3)
    assert (spot.name, spot.least, spot.most) == ("h100 (spot)", 0, 4)


def test_the_platform_adds_its_domain_and_its_overflow(tmp_path: Path) -> None:
    overflow = {
        "name": "burst",
        "accelerator": "l40s",
        "instance_types": ["g6e.xlarge", "g6e.12xlarge", "g6e.48xlarge"],
        "max_gpus": 4,
        "capacity_types": ["spot", "on-demand"],
    }
    platform = {"gateway": {"domain": "llm.example.com"}, "overflow": [overflow]}
    plan = read("prod-aws", written(tmp_path, platform, **SETTINGS))
    assert plan.gateway_domain == "llm.example.com"
    spot, on_demand = plan.nodes[-2:]
    assert (spot.name, spot.capacity) == ("burst (overflow, spot)", "spot")
    # Four of one GPU have 16 processors, one of four has 48; one of eight is too large.
    assert on_demand.instance_types == ("g6e.xlarge", "g6e.12xlarge")
    assert (on_demand.least, on_demand.most, on_demand.most_vcpus) == (0, 4, 48)


def test_a_network_and_a_cluster_that_are_there_are_not_made(tmp_path: Path) -> None:
    subnets = {"eu-west-1a": "subnet-1", "eu-west-1b": "subnet-2"}
    existing = {"vpc_id": "vpc-1", "cidr": "10.0.0.0/16", "private_subnets": subnets}
    plan = plan_of(
        tmp_path, network={"existing": existing}, cluster={"existing": {"name": "theirs"}}
    )
    assert not plan.makes_network
    assert not plan.makes_cluster
    assert plan.cluster == "theirs"
    assert plan.zones == ("eu-west-1a", "eu-west-1b")
    assert plan.nat_gateways == plan.endpoints == 0


def test_an_api_that_the_internet_reaches_is_not_private(tmp_path: Path) -> None:
    cluster = {**SETTINGS["cluster"], "public_access_cidrs": ["203.0.113.0/24"]}
    assert not plan_of(tmp_path, cluster=cluster).private_api


def test_what_make_up_writes_may_still_be_missing(tmp_path: Path) -> None:
    # database_ca_file and tags are in no settings here.
    assert plan_of(tmp_path).environment == "prod-aws"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network": {}}, "llm-platform:network: zones: name at least two"),
        ({"network": {"zones": ["eu-west-1a", "eu-west-1b"], "nat": "two"}}, "network.nat"),
        ({"gpu_pools": {"tpu": {"accelerator": "tpu", "max_nodes": 1}}}, "gpu_pools.tpu.accelera"),
        ({"cloud": "local"}, "nothing is to check"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(DeployError) as caught:
        plan_of(tmp_path, **changes)
    assert said in str(caught.value)
    assert "Pulumi.foundation.prod-aws.yaml" in str(caught.value)


def test_an_environment_without_settings_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"there is no .*Pulumi.foundation.staging-aws.yaml"):
        read("staging-aws", tmp_path)


def test_a_file_that_is_no_settings_is_said(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.foundation.prod-aws.yaml").write_text("- a list\n")
    with pytest.raises(DeployError, match="isn't a stack's settings"):
        read("prod-aws", tmp_path)
