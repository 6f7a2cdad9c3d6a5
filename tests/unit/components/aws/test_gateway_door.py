"""What leads to the gateway from outside, and who keeps its target group."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from components import Existing, GatewayDoor, LoadBalancerController
from tests import aws_samples
from tests.harness import Built, build

CERTIFICATE = "arn:aws:acm:eu-west-1:123456789012:certificate/theirs"


def door(**changes: Any) -> Built:
    return build(lambda: GatewayDoor("door", aws_samples.door_args(**changes)))


def controller(**changes: Any) -> Built:
    args = aws_samples.controller_args(**changes)
    return build(lambda: LoadBalancerController("doors", args))


def test_it_speaks_tls_and_nothing_else() -> None:
    listener = door().one("Listener").inputs
    assert (listener["port"], listener["protocol"]) == (443, "HTTPS")
    assert listener["sslPolicy"].startswith("ELBSecurityPolicy-TLS13")


def test_only_clients_come_in_and_only_pods_are_reached() -> None:
    built = door(clients=("10.0.0.0/8", "203.0.113.7"))
    into = [it.inputs for it in built.all("SecurityGroupIngressRule")]
    clients = {it["cidrIpv4"]: it["fromPort"] for it in into if "cidrIpv4" in it}
    assert clients == {"10.0.0.0/8": 443, "203.0.113.7/32": 443}
    (pods,) = (it for it in into if "cidrIpv4" not in it)
    assert (pods["securityGroupId"], pods["fromPort"]) == ("sg-cluster", 8080)
    (outward,) = (it.inputs for it in built.all("SecurityGroupEgressRule"))
    assert (outward["referencedSecurityGroupId"], outward["fromPort"]) == ("sg-cluster", 8080)
    group = built.one("SecurityGroup").inputs
    assert not {"ingress", "egress"} & group.keys()


def test_it_has_no_public_address_unless_that_is_wanted() -> None:
    assert door().one("LoadBalancer").inputs["internal"] is True
    assert door(public=True).one("LoadBalancer").inputs["internal"] is False


def test_it_is_kept_unless_that_is_not_wanted() -> None:
    assert door().one("LoadBalancer").inputs["enableDeletionProtection"] is True
    thrown_away = door(deletion_protection=False).one("LoadBalancer").inputs
    assert thrown_away["enableDeletionProtection"] is False


def test_a_certificate_is_made_and_proven_in_the_zone() -> None:
    built = door()
    proof, name = sorted(built.all("Record"), key=lambda it: it.inputs["name"])
    assert (proof.inputs["name"], proof.inputs["type"]) == ("_proof.llm.example.com.", "CNAME")
    assert (name.inputs["name"], name.inputs["type"]) == ("llm.example.com", "A")
    assert {it.inputs["zoneId"] for it in (proof, name)} == {"Z0123456789ABCDEFGHIJ"}
    waits = {it.kind for it in built.before(built.one("Listener"))}
    assert {"CertificateValidation", "Record"} <= waits


def test_a_certificate_that_is_there_is_used_and_a_zone_that_is_not_ours_left_alone() -> None:
    built = door(certificate_arn=CERTIFICATE, zone_id=None)
    assert built.one("Listener").inputs["certificateArn"] == CERTIFICATE
    assert built.all("Certificate") == []
    assert built.all("Record") == []


@pytest.mark.parametrize(
    ("longest", "idle", "leaving"), [(60, 120, 60), (3600, 3660, 3600), (7200, 4000, 3600)]
)
def test_it_waits_longer_than_the_gateway_as_far_as_aws_lets_it(
    longest: int, idle: int, leaving: int
) -> None:
    built = door(request_timeout_seconds=longest)
    assert built.one("LoadBalancer").inputs["idleTimeout"] == idle
    assert built.one("TargetGroup").inputs["deregistrationDelay"] == leaving


def test_the_pods_of_the_gateway_s_service_are_its_targets() -> None:
    built = door()
    binding = built.one("TargetGroupBinding")
    targets = built.one("TargetGroup")
    assert binding.namespace == "llm-platform"
    assert binding.inputs["spec"]["serviceRef"] == {"name": "gateway", "port": 80}
    assert binding.inputs["spec"]["targetGroupARN"].endswith("/0123456789abcdef")
    assert targets.urn in binding.depends_on
    assert (targets.inputs["targetType"], targets.inputs["port"]) == ("ip", 8080)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"clients": ()}, "clients"),
        ({"clients": ("everyone",)}, "isn't a range of IPv4 addresses"),
        ({"clients": ("10.0.0.1/8",)}, "host bits"),
        ({"clients": ("::/0",)}, "isn't a range of IPv4 addresses"),
        ({"domain": "llm"}, "domain"),
        ({"zone_id": None}, "zone_id or certificate_arn"),
        ({"request_timeout_seconds": 0}, "request_timeout_seconds"),
    ],
)
def test_what_could_not_work_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        aws_samples.door_args(**changes)


def test_the_controller_fills_target_groups_and_can_make_no_load_balancer() -> None:
    built = controller()
    policy = json.loads(built.one("RolePolicy").inputs["policy"])
    actions = {it for statement in policy["Statement"] for it in statement["Action"]}
    changing = {it for it in actions if not it.partition(":")[2].startswith("Describe")}
    assert changing == {
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:RegisterTargets",
    }
    values = built.one("Release").inputs["values"]
    assert values["enableServiceMutatorWebhook"] is False
    assert values["createIngressClassResource"] is False
    assert values["vpcId"] == "vpc-1"
    assert values["serviceAccount"]["name"] == "aws-load-balancer-controller"


def test_a_controller_that_is_there_is_left_alone() -> None:
    assert not [it for it in controller(source=Existing()).resources if it.custom]
