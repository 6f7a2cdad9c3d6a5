"""The provider's functions: what a program looks up instead of making it."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from .kinds import eks
from .moto import Cloud, CloudError
from .values import Properties

Function = Callable[[Cloud, Properties], Properties]


def _caller(cloud: Cloud, _: Properties) -> Properties:
    arn = f"arn:aws:iam::{cloud.account}:user/moto"
    return {"accountId": cloud.account, "arn": arn, "userId": "AKIAIOSFODNN7EXAMPLE"}


def _region(cloud: Cloud, args: Properties) -> Properties:
    region = args.get("region") or cloud.region
    return {
        "region": region,
        "name": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
        "description": region,
    }


def _partition(_: Cloud, __: Properties) -> Properties:
    return {
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


def _zones(cloud: Cloud, args: Properties) -> Properties:
    found = cloud.call("ec2", "DescribeAvailabilityZones", {})["AvailabilityZones"]
    chosen = [zone for zone in found if args.get("state", "available") == zone["State"]]
    excluded = {*args.get("excludeNames", []), *args.get("excludeZoneIds", [])}
    chosen = [z for z in chosen if not {z["ZoneName"], z["ZoneId"]} & excluded]
    return {
        "names": [zone["ZoneName"] for zone in chosen],
        "zoneIds": [zone["ZoneId"] for zone in chosen],
        "groupNames": [cloud.region],
        **args,
    }


def _filters(args: Properties, **own: str) -> list[dict[str, Any]]:
    """Return EC2's filters of a look-up: by what it names, its tags and its own filters."""
    named = {own[name]: [args[name]] for name in own if args.get(name)}
    tags = {f"tag:{key}": [value] for key, value in (args.get("tags") or {}).items()}
    more = {one["name"]: one["values"] for one in args.get("filters") or []}
    found = {**named, **tags, **more}
    return [{"Name": name, "Values": list(map(str, values))} for name, values in found.items()]


def _one(found: list[Any], what: str) -> Any:
    """Return the only one found, or say what the provider says of none and of many."""
    if not found:
        raise CloudError("NotFound", f"no matching {what} found")
    if len(found) > 1:
        raise CloudError("TooMany", f"multiple {what} matched; use additional constraints")
    return found[0]


def _vpc(cloud: Cloud, args: Properties) -> Properties:
    filters = _filters(args, id="vpc-id", cidrBlock="cidr", state="state")
    if args.get("default"):
        filters.append({"Name": "is-default", "Values": ["true"]})
    vpc = _one(cloud.call("ec2", "DescribeVpcs", {"Filters": filters})["Vpcs"], "EC2 VPC")
    tags = {tag["Key"]: tag["Value"] for tag in vpc.get("Tags", [])}
    arn = f"arn:aws:ec2:{cloud.region}:{cloud.account}:vpc/{vpc['VpcId']}"
    return {
        "id": vpc["VpcId"],
        "arn": arn,
        "cidrBlock": vpc["CidrBlock"],
        "cidrBlockAssociations": [
            {
                "associationId": a["AssociationId"],
                "cidrBlock": a["CidrBlock"],
                "state": "associated",
            }
            for a in vpc.get("CidrBlockAssociationSet", [])
        ],
        "default": vpc["IsDefault"],
        "state": vpc["State"],
        "tags": tags,
        "enableDnsSupport": True,
    }


def _subnet_of(cloud: Cloud, found: Mapping[str, Any]) -> Properties:
    arn = f"arn:aws:ec2:{cloud.region}:{cloud.account}:subnet/{found['SubnetId']}"
    return {
        "id": found["SubnetId"],
        "arn": arn,
        "vpcId": found["VpcId"],
        "cidrBlock": found["CidrBlock"],
        "availabilityZone": found["AvailabilityZone"],
        "availabilityZoneId": found.get("AvailabilityZoneId", ""),
        "mapPublicIpOnLaunch": found.get("MapPublicIpOnLaunch", False),
        "state": found["State"],
        "tags": {tag["Key"]: tag["Value"] for tag in found.get("Tags", [])},
    }


SUBNET = {"id": "subnet-id", "vpcId": "vpc-id", "cidrBlock": "cidr-block",
          "availabilityZone": "availability-zone"}  # fmt: skip


def _subnet(cloud: Cloud, args: Properties) -> Properties:
    filters = {"Filters": _filters(args, **SUBNET)}
    found = cloud.call("ec2", "DescribeSubnets", filters)["Subnets"]
    return _subnet_of(cloud, _one(found, "EC2 Subnet"))


def _subnets(cloud: Cloud, args: Properties) -> Properties:
    filters = {"Filters": _filters(args)}
    found = cloud.call("ec2", "DescribeSubnets", filters)["Subnets"]
    return {"id": cloud.region, "ids": sorted(subnet["SubnetId"] for subnet in found), **args}


def _security_group(cloud: Cloud, args: Properties) -> Properties:
    filters = {"Filters": _filters(args, id="group-id", name="group-name", vpcId="vpc-id")}
    found = cloud.call("ec2", "DescribeSecurityGroups", filters)["SecurityGroups"]
    group = _one(found, "EC2 Security Group")
    arn = f"arn:aws:ec2:{cloud.region}:{cloud.account}:security-group/{group['GroupId']}"
    return {
        "id": group["GroupId"],
        "arn": arn,
        "name": group["GroupName"],
        "description": group["Description"],
        "vpcId": group["VpcId"],
        "tags": {tag["Key"]: tag["Value"] for tag in group.get("Tags", [])},
    }


def _prefix_list(cloud: Cloud, args: Properties) -> Properties:
    filters = {"Filters": _filters(args, name="prefix-list-name", prefixListId="prefix-list-id")}
    found = cloud.call("ec2", "DescribePrefixLists", filters)["PrefixLists"]
    chosen = _one(found, "EC2 Prefix List")
    return {
        "id": chosen["PrefixListId"],
        "prefixListId": chosen["PrefixListId"],
        "name": chosen["PrefixListName"],
        "cidrBlocks": chosen.get("Cidrs", []),
    }


def _managed_prefix_list(cloud: Cloud, args: Properties) -> Properties:
    filters = {"Filters": _filters(args, name="prefix-list-name", id="prefix-list-id")}
    found = cloud.call("ec2", "DescribeManagedPrefixLists", filters)["PrefixLists"]
    chosen = _one(found, "EC2 Managed Prefix List")
    return {
        "id": chosen["PrefixListId"],
        "arn": chosen["PrefixListArn"],
        "name": chosen["PrefixListName"],
        "addressFamily": chosen.get("AddressFamily", "IPv4"),
        "entries": [],
        "maxEntries": 0,
        "ownerId": "AWS",
        "version": 1,
        "tags": {},
    }


def _cluster(cloud: Cloud, args: Properties) -> Properties:
    found = cloud.find("eks", "DescribeCluster", "cluster", name=args["name"])
    if found is None:
        raise CloudError(
            "NotFound", f"reading EKS Cluster ({args['name']}): couldn't find resource"
        )
    config = found.get("resourcesVpcConfig", {})
    return {
        "id": found["name"],
        "name": found["name"],
        "arn": found["arn"],
        "version": found["version"],
        "endpoint": eks.endpoint(found),
        "certificateAuthorities": [{"data": eks.authority(found)}],
        "identities": [{"oidcs": [found.get("identity", {}).get("oidc", {})]}],
        "roleArn": found["roleArn"],
        "status": found["status"],
        "platformVersion": found["platformVersion"],
        "enabledClusterLogTypes": [],
        "vpcConfig": {
            "subnetIds": config.get("subnetIds", []),
            "securityGroupIds": config.get("securityGroupIds", []),
            "publicAccessCidrs": config.get("publicAccessCidrs", []),
            "endpointPrivateAccess": config.get("endpointPrivateAccess", False),
            "endpointPublicAccess": config.get("endpointPublicAccess", True),
            **eks.own_network(cloud, found["name"]),
        },
        "tags": found.get("tags", {}),
    }


def _cluster_auth(_: Cloud, args: Properties) -> Properties:
    return {"id": args["name"], "name": args["name"], "token": "k8s-aws-v1.stand-in"}


def _addon_version(_: Cloud, args: Properties) -> Properties:
    names = {"addonName": args["addonName"], "kubernetesVersion": args["kubernetesVersion"]}
    return {**names, "version": "v1.0.0-eksbuild.1", "mostRecent": args.get("mostRecent", False)}


# EKS's own public parameters: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
def _parameter(cloud: Cloud, args: Properties) -> Properties:
    name = args["name"]
    found = cloud.find("ssm", "GetParameter", "Parameter", Name=name, WithDecryption=True)
    if found is None and name.startswith("/aws/service/eks/optimized-ami/"):
        value = "ami-12c6146b" if name.endswith("image_id") else "1.35.0-20261101"
        found = {"Name": name, "Type": "String", "Value": value, "Version": 1}
    if found is None:
        raise CloudError("ParameterNotFound", f"couldn't find resource: {name}")
    arn = f"arn:aws:ssm:{cloud.region}:{cloud.account}:parameter{name}"
    secret = found["Type"] == "SecureString"
    return {
        "name": name,
        "type": found["Type"],
        "value": found["Value"],
        "insecureValue": "" if secret else found["Value"],
        "version": found["Version"],
        "arn": found.get("ARN", arn),
    }


def _policy_document(_: Cloud, args: Properties) -> Properties:
    statements = [_statement(one) for one in args.get("statements") or []]
    document: Properties = {"Version": args.get("version", "2012-10-17")}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    text = json.dumps({**document, "Statement": statements}, indent=2)
    return {"json": text, "minifiedJson": json.dumps(json.loads(text), separators=(",", ":"))}


def _statement(said: Mapping[str, Any]) -> Properties:
    def several(values: list[str]) -> Any:
        return values[0] if len(values) == 1 else sorted(values, reverse=True)

    statement: Properties = {"Effect": said.get("effect", "Allow")}
    if said.get("sid"):
        statement["Sid"] = said["sid"]
    for name in ("actions", "notActions", "resources", "notResources"):
        if said.get(name):
            statement[name[0].upper() + name[1:-1]] = several(said[name])
    for name in ("principals", "notPrincipals"):
        if said.get(name):
            key = name[0].upper() + name[1:-1]
            statement[key] = {p["type"]: several(p["identifiers"]) for p in said[name]}
    conditions: Properties = {}
    for one in said.get("conditions") or []:
        conditions.setdefault(one["test"], {})[one["variable"]] = several(one["values"])
    return {**statement, "Condition": conditions} if conditions else statement


def _looked_up(service: str, operation: str, path: str, **named: str) -> Function:
    """Return a look-up that one call answers; its parameters by the argument they take."""

    def look(cloud: Cloud, args: Properties) -> Properties:
        params = {member: args[name] for member, name in named.items() if args.get(name)}
        found = cloud.find(service, operation, path, **params)
        if found is None:
            raise CloudError("NotFound", f"couldn't find resource: {operation} {params}")
        return {**_lowered(found), **args}

    return look


def _lowered(found: Mapping[str, Any]) -> Properties:
    """Return an answer's plain values, by names as Pulumi writes them."""
    return {
        (name if name.islower() else name[0].lower() + name[1:]): value
        for name, value in found.items()
        if isinstance(value, str | int | float | bool | dict)
    }


def _role(cloud: Cloud, args: Properties) -> Properties:
    role = cloud.find("iam", "GetRole", "Role", RoleName=args["name"])
    if role is None:
        raise CloudError("NotFound", f"reading IAM Role ({args['name']}): couldn't find resource")
    return {
        "id": args["name"],
        "name": args["name"],
        "arn": role["Arn"],
        "path": role["Path"],
        "uniqueId": role["RoleId"],
        "description": role.get("Description", ""),
        "maxSessionDuration": role.get("MaxSessionDuration", 3600),
        "permissionsBoundary": role.get("PermissionsBoundary", {}).get(
            "PermissionsBoundaryArn", ""
        ),
        "assumeRolePolicy": json.dumps(role["AssumeRolePolicyDocument"]),
        "createDate": role["CreateDate"].isoformat(),
        "roleLastUseds": [],
        "tags": {},
    }


def _zone(cloud: Cloud, args: Properties) -> Properties:
    found = cloud.call("route53", "ListHostedZones", {})["HostedZones"]
    name = str(args.get("name", "")).rstrip(".")
    chosen = [
        zone
        for zone in found
        if args.get("zoneId") in {zone["Id"].rpartition("/")[2]}
        or (
            (name and zone["Name"].rstrip(".") == name)
            and zone["Config"]["PrivateZone"] == bool(args.get("privateZone"))
        )
    ]
    zone = _one(chosen, "Route 53 Hosted Zone")
    zone_id = zone["Id"].rpartition("/")[2]
    return {
        "id": zone_id,
        "zoneId": zone_id,
        "arn": f"arn:aws:route53:::hostedzone/{zone_id}",
        "name": zone["Name"].rstrip("."),
        "privateZone": zone["Config"]["PrivateZone"],
        "nameServers": [],
        "comment": zone["Config"].get("Comment", ""),
        "resourceRecordSetCount": zone.get("ResourceRecordSetCount", 0),
        "callerReference": zone["CallerReference"],
        "tags": {},
    }


def _repository(cloud: Cloud, args: Properties) -> Properties:
    from .kinds.ecr import url

    found = cloud.find(
        "ecr", "DescribeRepositories", "repositories[0]", repositoryNames=[args["name"]]
    )
    if found is None:
        raise CloudError("NotFound", f"reading ECR Repository ({args['name']}): not found")
    return {
        "id": args["name"],
        "name": args["name"],
        "arn": found["repositoryArn"],
        "registryId": found["registryId"],
        "repositoryUrl": url(args["name"], found["repositoryUri"]),
    }


FUNCTIONS: Mapping[str, Function] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getSecurityGroup:getSecurityGroup": _security_group,
    "aws:ec2/getPrefixList:getPrefixList": _prefix_list,
    "aws:ec2/getManagedPrefixList:getManagedPrefixList": _managed_prefix_list,
    "aws:ecr/getRepository:getRepository": _repository,
    "aws:eks/getCluster:getCluster": _cluster,
    "aws:eks/getClusterAuth:getClusterAuth": _cluster_auth,
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:iam/getPolicyDocument:getPolicyDocument": _policy_document,
    "aws:iam/getRole:getRole": _role,
    "aws:kms/getKey:getKey": _looked_up("kms", "DescribeKey", "KeyMetadata", KeyId="keyId"),
    "aws:route53/getZone:getZone": _zone,
    "aws:secretsmanager/getSecretVersion:getSecretVersion": _looked_up(
        "secretsmanager", "GetSecretValue", "@", SecretId="secretId"
    ),
    "aws:ssm/getParameter:getParameter": _parameter,
}


def invoke(token: str, cloud: Cloud, args: Properties) -> Properties:
    """Answer a function; one that has no entry is refused."""
    if token not in FUNCTIONS:
        raise CloudError(
            "StandIn", f"the stand-in has no entry for {token}; add one to stand_in_aws/invokes.py"
        )
    found = FUNCTIONS[token](cloud, args)
    return {"id": cloud.region, **found, "region": args.get("region") or cloud.region}
