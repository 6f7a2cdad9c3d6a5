"""Load balancers, certificates, DNS. Replacements: internal/service/{elbv2,acm,route53}/*.go."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, given

LOAD_BALANCER = "aws:lb/loadBalancer:LoadBalancer"
TARGET_GROUP = "aws:lb/targetGroup:TargetGroup"
LISTENER = "aws:lb/listener:Listener"
SHORT_NAME = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
ATTRIBUTES = {
    "idleTimeout": "idle_timeout.timeout_seconds",
    "clientKeepAlive": "client_keep_alive.seconds",
    "desyncMitigationMode": "routing.http.desync_mitigation_mode",
    "dropInvalidHeaderFields": "routing.http.drop_invalid_header_fields.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
    "enableHttp2": "routing.http2.enabled",
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableWafFailOpen": "waf.fail_open.enabled",
    "preserveHostHeader": "routing.http.preserve_host_header.enabled",
    "xffHeaderProcessingMode": "routing.http.xff_header_processing.mode",
}
TARGET_ATTRIBUTES = {
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "slowStart": "slow_start.duration_seconds",
    "loadBalancingAlgorithmType": "load_balancing.algorithm.type",
    "preserveClientIp": "preserve_client_ip.enabled",
    "proxyProtocolV2": "proxy_protocol_v2.enabled",
}


def _set(operation: str, arn: str, names: Mapping[str, str]) -> Callable[[Context], None]:
    """Return what sets those attributes that are said."""

    def put(context: Context) -> None:
        said = {key: context.facts.get(name) for name, key in names.items()}
        logs = context.facts.get("accessLogs") or {}
        said |= {f"access_logs.s3.{name}": value for name, value in logs.items()}
        listed = [
            {"Key": key, "Value": str(value).lower() if isinstance(value, bool) else str(value)}
            for key, value in said.items()
            if value is not None
        ]
        if listed:
            params = {arn: context.facts["id"], "Attributes": listed}
            context.cloud.call("elbv2", operation, params)

    return put


def _scheme(facts: Facts) -> dict[str, Any]:
    internal = facts.get("internal")
    if unknown(internal):
        return {}
    return {"Scheme": "internal" if internal else "internet-facing"}


def _protected(context: Context) -> None:
    if context.facts["outputs"].get("enableDeletionProtection"):
        arn = context.facts["id"]
        raise CloudError(
            "OperationNotPermitted",
            f"Load balancer '{arn}' cannot be deleted because deletion protection is enabled",
            "DeleteLoadBalancer",
        )


BALANCER = Kind(
    LOAD_BALANCER,
    "elbv2",
    Call(
        "CreateLoadBalancer",
        rename={"loadBalancerType": "Type"},
        takes=("internal",),
        more=_scheme,
    ),
    "{made.LoadBalancers[0].LoadBalancerArn}",
    then=(
        Act(
            _set("ModifyLoadBalancerAttributes", "LoadBalancerArn", ATTRIBUTES),
            (*ATTRIBUTES, "accessLogs"),
        ),
    ),
    update=(
        Call("SetSecurityGroups", {"LoadBalancerArn": "{id}"}, only=("securityGroups",)),
        Call("SetSubnets", {"LoadBalancerArn": "{id}"}, only=("subnets",)),
        Call("SetIpAddressType", {"LoadBalancerArn": "{id}"}, only=("ipAddressType",)),
    ),
    read=Read("DescribeLoadBalancers", {"LoadBalancerArns": ["{id}"]}, "LoadBalancers[0]"),
    delete=(Act(_protected), Call("DeleteLoadBalancer", {"LoadBalancerArn": "{id}"})),
    replaces=("name", "internal", "loadBalancerType"),
    named=Named("name", 32, SHORT_NAME),
    gives={
        "arn": "{id}",
        "arnSuffix": lambda c: c.facts["id"].partition(":loadbalancer/")[2],
        "dnsName": "{seen.DNSName}",
        "zoneId": "{seen.CanonicalHostedZoneId}",
    },
)


def _health(facts: Facts) -> dict[str, Any]:
    check = facts.get("healthCheck") or {}
    if unknown(check):
        return {}
    names = {
        "enabled": "HealthCheckEnabled",
        "interval": "HealthCheckIntervalSeconds",
        "path": "HealthCheckPath",
        "port": "HealthCheckPort",
        "protocol": "HealthCheckProtocol",
        "timeout": "HealthCheckTimeoutSeconds",
        "healthyThreshold": "HealthyThresholdCount",
        "unhealthyThreshold": "UnhealthyThresholdCount",
    }
    found = {member: check.get(name) for name, member in names.items()}
    matcher = check.get("matcher")
    return given({**found, "Matcher": {"HttpCode": matcher} if matcher else None})


TARGETS = Kind(
    TARGET_GROUP,
    "elbv2",
    Call("CreateTargetGroup", takes=("healthCheck",), more=_health),
    "{made.TargetGroups[0].TargetGroupArn}",
    then=(
        Act(
            _set("ModifyTargetGroupAttributes", "TargetGroupArn", TARGET_ATTRIBUTES),
            tuple(TARGET_ATTRIBUTES),
        ),
    ),
    update=(
        Call("ModifyTargetGroup", {"TargetGroupArn": "{id}"}, takes=("healthCheck",),
             only=("healthCheck",), more=_health),
    ),
    read=Read("DescribeTargetGroups", {"TargetGroupArns": ["{id}"]}, "TargetGroups[0]"),
    delete=(Call("DeleteTargetGroup", {"TargetGroupArn": "{id}"}),),
    replaces=("name", "port", "protocol", "protocolVersion", "targetType", "vpcId",
              "ipAddressType"),
    named=Named("name", 32, SHORT_NAME),
    gives={
        "arn": "{id}",
        "arnSuffix": lambda c: "targetgroup/" + c.facts["id"].partition(":targetgroup/")[2],
    },
    keeps=(LISTENER, "aws:lb/listenerRule:ListenerRule"),
)  # fmt: skip

ACTIONS = {
    "defaultActions.fixedResponse": "FixedResponseConfig",
    "defaultActions.redirect": "RedirectConfig",
    "defaultActions.forward": "ForwardConfig",
    "actions.fixedResponse": "FixedResponseConfig",
    "actions.redirect": "RedirectConfig",
    "actions.forward": "ForwardConfig",
    "conditions.hostHeader": "HostHeaderConfig",
    "conditions.pathPattern": "PathPatternConfig",
    "conditions.httpHeader": "HttpHeaderConfig",
    "conditions.sourceIp": "SourceIpConfig",
}


def _certificate(facts: Facts) -> dict[str, Any]:
    arn = facts.get("certificateArn")
    return {"Certificates": [{"CertificateArn": arn}]} if arn else {}


def _listener_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    secure = facts.get("protocol") in {"HTTPS", "TLS"}
    if secure and not facts.get("certificateArn"):
        yield "certificateArn", f"is needed for {facts['protocol']}"
    if not secure and facts.get("sslPolicy"):
        yield "sslPolicy", "needs the protocol HTTPS or TLS"


LISTENER_KIND = Kind(
    LISTENER,
    "elbv2",
    Call("CreateListener", rename=ACTIONS, takes=("certificateArn",), more=_certificate),
    "{made.Listeners[0].ListenerArn}",
    update=(
        Call(
            "ModifyListener",
            {"ListenerArn": "{id}"},
            rename=ACTIONS,
            takes=("certificateArn",),
            more=_certificate,
            whole=True,
        ),
    ),
    read=Read("DescribeListeners", {"ListenerArns": ["{id}"]}, "Listeners[0]"),
    delete=(Call("DeleteListener", {"ListenerArn": "{id}"}),),
    replaces=("loadBalancerArn",),
    gives={"arn": "{id}"},
    checks=_listener_checks,
)


LISTENER_RULE = Kind(
    "aws:lb/listenerRule:ListenerRule",
    "elbv2",
    Call("CreateRule", rename=ACTIONS),
    "{made.Rules[0].RuleArn}",
    update=(
        Call("ModifyRule", {"RuleArn": "{id}"}, rename=ACTIONS, only=("actions", "conditions")),
    ),
    read=Read("DescribeRules", {"RuleArns": ["{id}"]}, "Rules[0]"),
    delete=(Call("DeleteRule", {"RuleArn": "{id}"}),),
    replaces=("listenerArn", "priority"),
    gives={"arn": "{id}"},
)


# Certificates


def _validation(context: Context) -> list[dict[str, Any]]:
    """Return the DNS records that would prove whose domain it is."""
    options = context.facts["seen"].get("DomainValidationOptions", [])
    return [
        {
            "domainName": option["DomainName"],
            "resourceRecordName": option.get("ResourceRecord", {}).get("Name"),
            "resourceRecordType": option.get("ResourceRecord", {}).get("Type"),
            "resourceRecordValue": option.get("ResourceRecord", {}).get("Value"),
        }
        for option in options
    ]


def _certificate_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    if not facts.get("domainName") and not facts.get("certificateBody"):
        yield "domainName", "either domainName or certificateBody is needed"
    if facts.get("domainName") and not facts.get("validationMethod"):
        yield "validationMethod", "is needed with domainName"


CERTIFICATE = Kind(
    "aws:acm/certificate:Certificate",
    "acm",
    Call("RequestCertificate"),
    "{made.CertificateArn}",
    update=(
        Call("UpdateCertificateOptions", {"CertificateArn": "{id}"}, only=("options",), moto=False),
    ),
    read=Read("DescribeCertificate", {"CertificateArn": "{id}"}, "Certificate"),
    delete=(Call("DeleteCertificate", {"CertificateArn": "{id}"}),),
    replaces=("domainName", "subjectAlternativeNames", "validationMethod", "keyAlgorithm",
              "certificateAuthorityArn"),
    gives={"arn": "{id}", "domainValidationOptions": _validation},
    checks=_certificate_checks,
    keeps=(f"{LISTENER}#certificateArn",),
)  # fmt: skip


def _certificate_is_there(context: Context) -> None:
    arn = context.facts["certificateArn"]
    if not context.cloud.find("acm", "DescribeCertificate", "Certificate", CertificateArn=arn):
        raise CloudError("ResourceNotFoundException", f"Could not find certificate {arn}.")


CERTIFICATE_VALIDATION = Kind(
    "aws:acm/certificateValidation:CertificateValidation",
    "acm",
    None,
    "{certificateArn}",
    replaces=("certificateArn", "validationRecordFqdns"),
    local=("certificateArn", "validationRecordFqdns"),
    rules=_certificate_is_there,
)


# DNS


def _zone(facts: Facts) -> dict[str, Any]:
    networks = facts.get("vpcs") or []
    config = {"Comment": facts.get("comment", ""), "PrivateZone": bool(networks)}
    first = networks[0] if networks and not unknown(networks) else None
    vpc = None
    if first:
        vpc = {"VPCId": first["vpcId"], "VPCRegion": first.get("vpcRegion", facts["region"])}
    reference = {"CallerReference": facts["fake"]}
    return {**reference, "HostedZoneConfig": config, **({"VPC": vpc} if vpc else {})}


ZONE = Kind(
    "aws:route53/zone:Zone",
    "route53",
    Call("CreateHostedZone", only=("name",), takes=("comment", "vpcs"), more=_zone),
    "{made.HostedZone.Id}",
    update=(Call("UpdateHostedZoneComment", {"Id": "{outputs.zoneId}"}, only=("comment",)),),
    read=Read("GetHostedZone", {"Id": "{id}"}, "@"),
    delete=(Call("DeleteHostedZone", {"Id": "{id}"}),),
    replaces=("name", "delegationSetId", "vpcs"),
    local=("forceDestroy",),
    named=Named("name", 255, given=True),
    defaults={"comment": "Managed by Pulumi"},
    gives={
        "zoneId": lambda c: c.facts["id"].rpartition("/")[2],
        "arn": lambda c: f"arn:aws:route53:::hostedzone/{c.facts['id'].rpartition('/')[2]}",
        "nameServers": "{seen.DelegationSet.NameServers}",
    },
    keeps=("aws:route53/record:Record",),
)


def _record_set(facts: Facts) -> dict[str, Any]:
    record: dict[str, Any] = {"Name": facts["name"], "Type": facts["type"]}
    if aliases := facts.get("aliases"):
        target = aliases[0]
        record["AliasTarget"] = {
            "DNSName": target["name"],
            "HostedZoneId": target["zoneId"],
            "EvaluateTargetHealth": target["evaluateTargetHealth"],
        }
    else:
        record["TTL"] = facts.get("ttl", 300)
        record["ResourceRecords"] = [{"Value": value} for value in facts.get("records") or []]
    return record


def _records(action: str) -> Callable[[Facts], dict[str, Any]]:
    def build(facts: Facts) -> dict[str, Any]:
        chosen = "UPSERT" if action == "CREATE" and facts.get("allowOverwrite") else action
        change = {"Action": chosen, "ResourceRecordSet": _record_set(facts)}
        return {"HostedZoneId": facts["zoneId"], "ChangeBatch": {"Changes": [change]}}

    return build


RECORD_TAKES = ("zoneId", "name", "type", "ttl", "records", "aliases")


def _record_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    if bool(facts.get("records")) == bool(facts.get("aliases")):
        yield "records", "exactly one of records and aliases is needed"
    if facts.get("records") and facts.get("ttl") is None:
        yield "ttl", "is needed with records"


RECORD = Kind(
    "aws:route53/record:Record",
    "route53",
    Call("ChangeResourceRecordSets", takes=RECORD_TAKES, more=_records("CREATE")),
    "{zoneId}_{name}_{type}",
    update=(
        Call(
            "ChangeResourceRecordSets",
            takes=("ttl", "records", "aliases"),
            more=_records("UPSERT"),
        ),
    ),
    delete=(Call("ChangeResourceRecordSets", more=_records("DELETE")),),
    replaces=("zoneId", "name", "type"),
    local=("allowOverwrite",),
    gives={"fqdn": lambda c: c.facts["name"].rstrip(".")},
    checks=_record_checks,
)

KINDS = (
    BALANCER,
    TARGETS,
    LISTENER_KIND,
    LISTENER_RULE,
    CERTIFICATE,
    CERTIFICATE_VALIDATION,
    ZONE,
    RECORD,
)
