"""VPC, subnets, routes, security groups, endpoints. Replacements: internal/service/ec2/vpc_*.go."""

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, added, each, given, removed

ARN = "arn:aws:ec2:{region}:{account}:"
INTERFACES = (
    "aws:ec2/natGateway:NatGateway",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:eks/cluster:Cluster",
    "aws:eks/nodeGroup:NodeGroup",
    "aws:elasticache/replicationGroup:ReplicationGroup",
    "aws:elasticache/subnetGroup:SubnetGroup",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:lb/loadBalancer:LoadBalancer",
    "aws:rds/cluster:Cluster",
    "aws:rds/instance:Instance",
    "aws:rds/subnetGroup:SubnetGroup",
)
"""Types that have network interfaces in the subnets and security groups that they mention."""


def _ranges(facts: Facts, *names: str) -> Iterator[tuple[str, str]]:
    for name in names:
        value = facts.get(name)
        if isinstance(value, str) and not unknown(value):
            try:
                ipaddress.ip_network(value)
            except ValueError as error:
                yield name, str(error)


def _of_vpc(operation: str, path: str, **filters: str) -> Callable[[Context], Any]:
    """Return what looks up a thing that came with the VPC."""

    def look(context: Context) -> Any:
        wanted = {"vpc-id": context.facts["id"], **filters}
        listed = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
        return context.cloud.find("ec2", operation, path, Filters=listed)

    return look


def _vpc_forces(old: Any, new: Any) -> list[str]:
    # From dedicated to default in place, the other way not.
    return ["instanceTenancy"] if new.get("instanceTenancy") == "dedicated" else []


VPC = Kind(
    "aws:ec2/vpc:Vpc",
    "ec2",
    Call("CreateVpc", rename={"assignGeneratedIpv6CidrBlock": "AmazonProvidedIpv6CidrBlock"}),
    "{made.Vpc.VpcId}",
    then=each(
        "ModifyVpcAttribute",
        {"VpcId": "{id}"},
        "enableDnsSupport",
        "enableDnsHostnames",
        "enableNetworkAddressUsageMetrics",
    ),
    update=(Call("ModifyVpcTenancy", {"VpcId": "{id}"}, only=("instanceTenancy",)),),
    read=Read("DescribeVpcs", {"VpcIds": ["{id}"]}, "Vpcs[0]"),
    delete=(Call("DeleteVpc", {"VpcId": "{id}"}),),
    replaces=("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
    forces=_vpc_forces,
    tag_spec="vpc",
    gives={
        "arn": ARN + "vpc/{id}",
        "defaultNetworkAclId": _of_vpc(
            "DescribeNetworkAcls", "NetworkAcls[?IsDefault]|[0].NetworkAclId"
        ),
        "defaultRouteTableId": _of_vpc("DescribeRouteTables", "RouteTables[0].RouteTableId"),
        "mainRouteTableId": _of_vpc("DescribeRouteTables", "RouteTables[0].RouteTableId"),
        "defaultSecurityGroupId": _of_vpc(
            "DescribeSecurityGroups", "SecurityGroups[0].GroupId", **{"group-name": "default"}
        ),
    },
    checks=lambda facts: _ranges(facts, "cidrBlock"),
)

SUBNET = Kind(
    "aws:ec2/subnet:Subnet",
    "ec2",
    Call("CreateSubnet"),
    "{made.Subnet.SubnetId}",
    then=each(
        "ModifySubnetAttribute",
        {"SubnetId": "{id}"},
        "mapPublicIpOnLaunch",
        "assignIpv6AddressOnCreation",
        "enableDns64",
        "enableResourceNameDnsARecordOnLaunch",
        "privateDnsHostnameTypeOnLaunch",
    ),
    read=Read("DescribeSubnets", {"SubnetIds": ["{id}"]}, "Subnets[0]"),
    delete=(Call("DeleteSubnet", {"SubnetId": "{id}"}),),
    replaces=("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "ipv6Native"),
    tag_spec="subnet",
    gives={"arn": ARN + "subnet/{id}"},
    checks=lambda facts: _ranges(facts, "cidrBlock"),
    keeps=INTERFACES,
)


def _attach(context: Context) -> None:
    gateway = {"InternetGatewayId": context.facts["id"]}
    if before := context.facts["old"].get("vpcId"):
        context.cloud.call("ec2", "DetachInternetGateway", {**gateway, "VpcId": before})
    if now := context.facts.get("vpcId"):
        context.cloud.call("ec2", "AttachInternetGateway", {**gateway, "VpcId": now})


def _detach(context: Context) -> None:
    if vpc := context.facts.get("vpcId"):
        gateway = {"InternetGatewayId": context.facts["id"], "VpcId": vpc}
        context.cloud.call("ec2", "DetachInternetGateway", gateway)


INTERNET_GATEWAY = Kind(
    "aws:ec2/internetGateway:InternetGateway",
    "ec2",
    Call("CreateInternetGateway"),
    "{made.InternetGateway.InternetGatewayId}",
    then=(Act(_attach, ("vpcId",)),),
    read=Read("DescribeInternetGateways", {"InternetGatewayIds": ["{id}"]}, "InternetGateways[0]"),
    delete=(Act(_detach), Call("DeleteInternetGateway", {"InternetGatewayId": "{id}"})),
    tag_spec="internet-gateway",
    gives={"arn": ARN + "internet-gateway/{id}"},
    keeps=("aws:ec2/route:Route",),
)

EIP = Kind(
    "aws:ec2/eip:Eip",
    "ec2",
    Call("AllocateAddress"),
    "{made.AllocationId}",
    read=Read("DescribeAddresses", {"AllocationIds": ["{id}"]}, "Addresses[0]"),
    delete=(Call("ReleaseAddress", {"AllocationId": "{id}"}),),
    replaces=("domain", "networkBorderGroup", "publicIpv4Pool"),
    tag_spec="elastic-ip",
    gives={"allocationId": "{id}", "arn": ARN + "elastic-ip/{id}"},
    keeps=("aws:ec2/natGateway:NatGateway",),
)

NAT_GATEWAY = Kind(
    "aws:ec2/natGateway:NatGateway",
    "ec2",
    Call("CreateNatGateway"),
    "{made.NatGateway.NatGatewayId}",
    read=Read(
        "DescribeNatGateways",
        {"NatGatewayIds": ["{id}"]},
        "NatGateways[0]",
        gone="State == 'deleted'",
    ),
    delete=(Call("DeleteNatGateway", {"NatGatewayId": "{id}"}),),
    replaces=("subnetId", "allocationId", "connectivityType", "privateIp", "vpcId"),
    tag_spec="natgateway",
    gives={
        "publicIp": "{seen.NatGatewayAddresses[0].PublicIp}",
        "privateIp": "{seen.NatGatewayAddresses[0].PrivateIp}",
    },
)

TARGETS = ("gatewayId", "natGatewayId", "vpcEndpointId", "networkInterfaceId", "transitGatewayId",
           "egressOnlyGatewayId", "vpcPeeringConnectionId")  # fmt: skip
ROUTE_NAMES = {"egressOnlyGatewayId": "EgressOnlyInternetGatewayId"}


def _inline_routes(context: Context) -> None:
    """Make the routes of a table that lists its own what they should be."""
    table = {"RouteTableId": context.facts["id"]}
    destinations = {
        "cidrBlock": "DestinationCidrBlock",
        "ipv6CidrBlock": "DestinationIpv6CidrBlock",
        "destinationPrefixListId": "DestinationPrefixListId",
    }
    for route in removed(context.facts, "routes"):
        to = {destinations[k]: v for k, v in route.items() if k in destinations}
        context.cloud.call("ec2", "DeleteRoute", {**table, **to})
    for route in added(context.facts, "routes"):
        named = {
            destinations.get(k) or ROUTE_NAMES.get(k) or k[0].upper() + k[1:]: v
            for k, v in route.items()
        }
        context.cloud.call("ec2", "CreateRoute", {**table, **named})


ROUTE_TABLE = Kind(
    "aws:ec2/routeTable:RouteTable",
    "ec2",
    Call("CreateRouteTable"),
    "{made.RouteTable.RouteTableId}",
    then=(Act(_inline_routes, ("routes",)),),
    read=Read("DescribeRouteTables", {"RouteTableIds": ["{id}"]}, "RouteTables[0]"),
    delete=(Call("DeleteRouteTable", {"RouteTableId": "{id}"}),),
    replaces=("vpcId",),
    tag_spec="route-table",
    gives={"arn": ARN + "route-table/{id}"},
)


def _destination(facts: Facts) -> dict[str, Any]:
    names = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
    return given(
        {"RouteTableId": facts["routeTableId"]}
        | {name[0].upper() + name[1:]: facts.get(name) for name in names}
    )


def _route_targets(facts: Facts) -> Iterator[tuple[str, str]]:
    if not any(facts.get(name) for name in TARGETS):
        yield "gatewayId", f"a route needs one of {', '.join(TARGETS)}"


ROUTE = Kind(
    "aws:ec2/route:Route",
    "ec2",
    Call("CreateRoute", rename=ROUTE_NAMES),
    "r-{routeTableId}-"
    "{destinationCidrBlock || destinationIpv6CidrBlock || destinationPrefixListId}",
    update=(Call("ReplaceRoute", only=TARGETS, rename=ROUTE_NAMES, more=_destination),),
    delete=(Call("DeleteRoute", more=_destination),),
    replaces=("routeTableId", *(name for name in (
        "destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"))),
    gives={"state": lambda _: "active", "origin": lambda _: "CreateRoute"},
    checks=_route_targets,
)  # fmt: skip

ROUTE_TABLE_ASSOCIATION = Kind(
    "aws:ec2/routeTableAssociation:RouteTableAssociation",
    "ec2",
    Call("AssociateRouteTable"),
    "{made.AssociationId}",
    delete=(Call("DisassociateRouteTable", {"AssociationId": "{id}"}),),
    # The real provider changes the table in place (under another id); here it's a new one.
    replaces=("subnetId", "gatewayId", "routeTableId"),
)


def _permission(rule: dict[str, Any], own: str) -> dict[str, Any]:
    """Return one inline rule of a security group as EC2 takes it."""
    described = given({"Description": rule.get("description") or None})
    groups = [*rule.get("securityGroups", []), *([own] if rule.get("self") else [])]
    return given(
        {
            "IpProtocol": str(rule["protocol"]),
            "FromPort": rule.get("fromPort"),
            "ToPort": rule.get("toPort"),
            "IpRanges": [{"CidrIp": x, **described} for x in rule.get("cidrBlocks", [])],
            "Ipv6Ranges": [{"CidrIpv6": x, **described} for x in rule.get("ipv6CidrBlocks", [])],
            "PrefixListIds": [
                {"PrefixListId": x, **described} for x in rule.get("prefixListIds", [])
            ],
            "UserIdGroupPairs": [{"GroupId": x, **described} for x in groups],
        }
    )


def _inline_rules(context: Context) -> None:
    """Make a group's rules what it lists; a new group loses the egress that EC2 gives it."""
    facts, cloud = context.facts, context.cloud
    group = {"GroupId": facts["id"]}
    seen = cloud.find("ec2", "DescribeSecurityGroups", "SecurityGroups[0]", GroupIds=[facts["id"]])
    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    if not facts["old"] and seen.get("IpPermissionsEgress"):
        cloud.call("ec2", "RevokeSecurityGroupEgress", {**group, "IpPermissions": everything})
    for name, way in (("ingress", "Ingress"), ("egress", "Egress")):
        for rules, verb in ((removed, "Revoke"), (added, "Authorize")):
            found = [_permission(rule, facts["id"]) for rule in rules(facts, name)]
            if found:
                call = f"{verb}SecurityGroup{way}"
                cloud.call("ec2", call, {**group, "IpPermissions": found})


RULES = tuple(
    f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule" for way in ("Ingress", "Egress")
)
SECURITY_GROUP = Kind(
    "aws:ec2/securityGroup:SecurityGroup",
    "ec2",
    Call("CreateSecurityGroup", rename={"name": "GroupName"}),
    "{made.GroupId}",
    then=(Act(_inline_rules, ("ingress", "egress"), always=True),),
    read=Read("DescribeSecurityGroups", {"GroupIds": ["{id}"]}, "SecurityGroups[0]"),
    delete=(Call("DeleteSecurityGroup", {"GroupId": "{id}"}),),
    replaces=("name", "description", "vpcId"),
    local=("revokeRulesOnDelete",),
    named=Named("name", 255, r"[\w .:/()#,@\[\]+=&;{}!$*-]+"),
    defaults={"description": "Managed by Pulumi"},
    tag_spec="security-group",
    gives={"arn": ARN + "security-group/{id}", "ownerId": "{account}"},
    keeps=(*INTERFACES, *(f"{rule}#referencedSecurityGroupId" for rule in RULES)),
)


def _adopt(context: Context) -> None:
    """Take a VPC's own group: without rules, unless some are said."""
    group = context.cloud.find(
        "ec2", "DescribeSecurityGroups", "SecurityGroups[0]", GroupIds=[context.facts["id"]]
    )
    both = (("IpPermissions", "Ingress"), ("IpPermissionsEgress", "Egress"))
    for listed, way in both if not context.facts["old"] else ():
        if rules := group.get(listed):
            call = f"RevokeSecurityGroup{way}"
            params = {"GroupId": group["GroupId"], "IpPermissions": rules}
            context.cloud.call("ec2", call, params)
    facts = context.facts
    for name, way in (("ingress", "Ingress"), ("egress", "Egress")):
        if found := [_permission(rule, facts["id"]) for rule in added(facts, name)]:
            call = f"AuthorizeSecurityGroup{way}"
            context.cloud.call("ec2", call, {"GroupId": facts["id"], "IpPermissions": found})


DEFAULT_SECURITY_GROUP = Kind(
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "ec2",
    Call(
        "DescribeSecurityGroups",
        {
            "Filters": [
                {"Name": "vpc-id", "Values": ["{vpcId}"]},
                {"Name": "group-name", "Values": ["default"]},
            ]
        },
        takes=("vpcId",),
    ),
    "{made.SecurityGroups[0].GroupId}",
    then=(Act(_adopt, ("ingress", "egress"), always=True),),
    read=Read("DescribeSecurityGroups", {"GroupIds": ["{id}"]}, "SecurityGroups[0]"),
    replaces=("vpcId",),
    local=("revokeRulesOnDelete",),
    gives={"arn": ARN + "security-group/{id}", "ownerId": "{account}"},
)


RULE = ("ipProtocol", "fromPort", "toPort", "cidrIpv4", "cidrIpv6", "prefixListId",
        "referencedSecurityGroupId", "description")  # fmt: skip


def _rule_permission(facts: Facts) -> dict[str, Any]:
    described = given({"Description": facts.get("description")})
    ranges = {
        "IpRanges": ("CidrIp", "cidrIpv4"),
        "Ipv6Ranges": ("CidrIpv6", "cidrIpv6"),
        "PrefixListIds": ("PrefixListId", "prefixListId"),
        "UserIdGroupPairs": ("GroupId", "referencedSecurityGroupId"),
    }
    permission = {
        "IpProtocol": facts.get("ipProtocol"),
        "FromPort": facts.get("fromPort"),
        "ToPort": facts.get("toPort"),
    } | {
        listed: [{member: facts[name], **described}]
        for listed, (member, name) in ranges.items()
        if facts.get(name) is not None
    }
    return {"IpPermissions": [given(permission)]}


def _rule_change(facts: Facts) -> dict[str, Any]:
    rule = {
        "IpProtocol": facts.get("ipProtocol"),
        "FromPort": facts.get("fromPort"),
        "ToPort": facts.get("toPort"),
        "CidrIpv4": facts.get("cidrIpv4"),
        "CidrIpv6": facts.get("cidrIpv6"),
        "PrefixListId": facts.get("prefixListId"),
        "ReferencedGroupId": facts.get("referencedSecurityGroupId"),
        "Description": facts.get("description"),
    }
    changed = {"SecurityGroupRuleId": facts["id"], "SecurityGroupRule": given(rule)}
    return {"SecurityGroupRules": [changed]}


def _rule_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    sources = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    if sum(facts.get(name) is not None for name in sources) != 1:
        yield "cidrIpv4", f"a rule needs exactly one of {', '.join(sources)}"
    everything = facts.get("ipProtocol") == "-1"
    if not everything and (facts.get("fromPort") is None or facts.get("toPort") is None):
        yield "fromPort", "fromPort and toPort are needed unless ipProtocol is -1"
    if everything and facts.get("fromPort") is not None:
        yield "fromPort", "must not be set when ipProtocol is -1"
    yield from _ranges(facts, "cidrIpv4", "cidrIpv6")


def _rule(way: str) -> Kind:
    return Kind(
        f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
        "ec2",
        Call(
            f"AuthorizeSecurityGroup{way}",
            {"GroupId": "{securityGroupId}"},
            takes=("securityGroupId", *RULE),
            more=_rule_permission,
        ),
        "{made.SecurityGroupRules[0].SecurityGroupRuleId}",
        update=(
            Call(
                "ModifySecurityGroupRules",
                {"GroupId": "{securityGroupId}"},
                takes=RULE,
                more=_rule_change,
            ),
        ),
        read=Read(
            "DescribeSecurityGroupRules",
            {"SecurityGroupRuleIds": ["{id}"]},
            "SecurityGroupRules[0]",
        ),
        delete=(
            Call(
                f"RevokeSecurityGroup{way}",
                {"GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"]},
            ),
        ),
        replaces=("securityGroupId",),
        tag_spec="security-group-rule",
        gives={"arn": ARN + "security-group-rule/{id}", "securityGroupRuleId": "{id}"},
        checks=_rule_checks,
    )


LISTS = {"subnetIds": "Subnet", "securityGroupIds": "SecurityGroup", "routeTableIds": "RouteTable"}


def _endpoint_lists(facts: Facts) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, said in LISTS.items():
        changes[f"Add{said}Ids"] = added(facts, name) or None
        changes[f"Remove{said}Ids"] = removed(facts, name) or None
    return given(changes)


def _endpoint_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    kind = facts.get("vpcEndpointType", "Gateway")
    wrong = ("subnetIds", "securityGroupIds") if kind == "Gateway" else ("routeTableIds",)
    for name in wrong:
        if facts.get(name):
            yield name, f"isn't for an endpoint of type {kind}"
    if kind == "Gateway" and facts.get("privateDnsEnabled"):
        yield "privateDnsEnabled", "isn't for an endpoint of type Gateway"
    name = facts.get("serviceName") or ""
    if not unknown(name) and not name.startswith(("com.amazonaws.", "aws.", "cn.com.amazonaws.")):
        yield "serviceName", f"{name!r} is no service name"


def _prefix_list(context: Context) -> str | None:
    """Return the prefix list of a gateway endpoint."""
    gateway = context.facts.get("vpcEndpointType", "Gateway") == "Gateway"
    return "pl-" + context.facts["id"].removeprefix("vpce-")[:17] if gateway else None


VPC_ENDPOINT = Kind(
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "ec2",
    Call("CreateVpcEndpoint", rename={"policy": "PolicyDocument"}),
    "{made.VpcEndpoint.VpcEndpointId}",
    update=(
        Call(
            "ModifyVpcEndpoint",
            {"VpcEndpointId": "{id}"},
            rename={"policy": "PolicyDocument"},
            takes=tuple(LISTS),
            more=_endpoint_lists,
            only=("policy", "privateDnsEnabled", "dnsOptions", "ipAddressType", *LISTS),
        ),
    ),
    read=Read("DescribeVpcEndpoints", {"VpcEndpointIds": ["{id}"]}, "VpcEndpoints[0]"),
    delete=(Call("DeleteVpcEndpoints", {"VpcEndpointIds": ["{id}"]}),),
    replaces=("vpcId", "serviceName", "vpcEndpointType", "serviceRegion"),
    local=("autoAccept",),
    tag_spec="vpc-endpoint",
    gives={
        "arn": ARN + "vpc-endpoint/{id}",
        "state": lambda _: "available",
        "prefixListId": _prefix_list,
        "ownerId": "{account}",
    },
    checks=_endpoint_checks,
    keeps=("aws:ec2/route:Route",),
)


ENDPOINT_ROUTE_TABLE = Kind(
    "aws:ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
    "ec2",
    Call(
        "ModifyVpcEndpoint",
        {"VpcEndpointId": "{vpcEndpointId}", "AddRouteTableIds": ["{routeTableId}"]},
        takes=("vpcEndpointId", "routeTableId"),
    ),
    "a-{vpcEndpointId}{routeTableId}",
    delete=(
        Call(
            "ModifyVpcEndpoint",
            {"VpcEndpointId": "{vpcEndpointId}", "RemoveRouteTableIds": ["{routeTableId}"]},
        ),
    ),
    replaces=("vpcEndpointId", "routeTableId"),
)


def _logged(facts: Facts) -> dict[str, Any]:
    types = {"vpcId": "VPC", "subnetId": "Subnet", "eniId": "NetworkInterface"}
    name = next((name for name in types if facts.get(name)), "vpcId")
    return given({"ResourceIds": [facts.get(name)], "ResourceType": types[name]})


FLOW_LOG = Kind(
    "aws:ec2/flowLog:FlowLog",
    "ec2",
    Call(
        "CreateFlowLogs",
        rename={"iamRoleArn": "DeliverLogsPermissionArn"},
        takes=("vpcId", "subnetId", "eniId"),
        more=_logged,
    ),
    "{made.FlowLogIds[0]}",
    read=Read("DescribeFlowLogs", {"FlowLogIds": ["{id}"]}, "FlowLogs[0]"),
    delete=(Call("DeleteFlowLogs", {"FlowLogIds": ["{id}"]}),),
    replaces=("vpcId", "subnetId", "eniId", "trafficType", "logDestination", "logDestinationType",
              "iamRoleArn", "logFormat", "maxAggregationInterval", "destinationOptions"),
    tag_spec="vpc-flow-log",
    gives={"arn": ARN + "vpc-flow-log/{id}"},
)  # fmt: skip

EC2_TAG = Kind(
    "aws:ec2/tag:Tag",
    "ec2",
    Call(
        "CreateTags",
        {"Resources": ["{resourceId}"], "Tags": [{"Key": "{key}", "Value": "{value}"}]},
        takes=("resourceId", "key", "value"),
    ),
    "{resourceId},{key}",
    update=(
        Call(
            "CreateTags",
            {"Resources": ["{resourceId}"], "Tags": [{"Key": "{key}", "Value": "{value}"}]},
            takes=("value",),
        ),
    ),
    delete=(Call("DeleteTags", {"Resources": ["{resourceId}"], "Tags": [{"Key": "{key}"}]}),),
    replaces=("resourceId", "key"),
)

KINDS = (
    VPC,
    SUBNET,
    INTERNET_GATEWAY,
    EIP,
    NAT_GATEWAY,
    ROUTE_TABLE,
    ROUTE,
    ROUTE_TABLE_ASSOCIATION,
    SECURITY_GROUP,
    DEFAULT_SECURITY_GROUP,
    _rule("Ingress"),
    _rule("Egress"),
    VPC_ENDPOINT,
    ENDPOINT_ROUTE_TABLE,
    FLOW_LOG,
    EC2_TAG,
)
