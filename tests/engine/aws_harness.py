"""Runs Pulumi programs for AWS: the real engine and SDK, the stand-in provider, moto behind it."""

import asyncio
import base64
import gc
import json
import logging
import os
import stat
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from pulumi import automation

from tests.engine.stand_in_aws.moto import ACCOUNT, Cloud
from tests.engine.stand_in_aws.store import Record, Store

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
Program = Callable[[], None]

# `aws eks get-token`, as kubeconfigs of EKS call it: what it answers is the test's to say.
AWS_CLI = """#!/bin/sh
if [ "$1 $2" = "eks get-token" ] && [ -n "$STAND_IN_KUBE_CREDENTIAL" ]; then
    exec cat "$STAND_IN_KUBE_CREDENTIAL"
fi
echo "the stand-in for the AWS CLI knows only 'eks get-token', and that where the test names a" \\
    "credential" >&2
exit 1
"""


@contextmanager
def moto_server(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve moto in this process, as it was on its first day; give its address."""
    os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"  # so that a wrong name is refused
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(host, port, verbose=False)
    server.start()
    found_host, found_port = server.get_host_and_port()
    address = f"http://{found_host}:{found_port}"
    try:
        forget_everything(address)
        yield address
    finally:
        server.stop()


def forget_everything(address: str) -> None:
    """Empty moto."""
    request = urllib.request.Request(f"{address}/moto-api/reset", method="POST")  # noqa: S310
    urllib.request.urlopen(request).close()  # noqa: S310 - an address of this process


def _open_loops() -> set[int]:
    gc.collect()
    loops = (each for each in gc.get_objects() if isinstance(each, asyncio.BaseEventLoop))
    return {id(loop) for loop in loops if not loop.is_closed()}


@contextmanager
def failed_programs_let_go() -> Iterator[None]:
    """Drop what the Automation API leaves of programs that fail in here: loops, never closed.

    They go once the threads have ended that ran the programs, and some end after the engine has.
    """
    before = _open_loops()
    yield
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        for _ in range(100):
            if not _open_loops() - before:
                break
            for thread in threading.enumerate():
                if thread.name.startswith("ThreadPoolExecutor"):
                    thread.join(0.1)
    finally:
        sys.unraisablehook = hook


class AwsEngine:
    """One file backend and one account, and the stacks on them.

    Args:
        folder: Where state, the stand-in's store and the plugins go.
        moto: Address of the moto server.
        cache: Folder that keeps what was read of the SDK, for all engines of a run.
        region: Where the provider works when a program says nothing else.
        others: What the account hands out: STAND_IN_KUBE_SERVER, STAND_IN_KUBE_CA (base64),
            STAND_IN_KUBE_CREDENTIAL (a file with an ExecCredential), STAND_IN_POSTGRES
            (host:port), STAND_IN_POSTGRES_PASSWORD, STAND_IN_REDIS (host:port), STAND_IN_REGISTRY.
            Without one, moto's own answer is given, which leads nowhere.
    """

    def __init__(
        self, folder: Path, moto: str, cache: Path, region: str = REGION, **others: str
    ) -> None:
        self.folder = folder
        self.moto = moto
        self.region = region
        self._cache = cache
        self._others = others
        for name in ("state", "store", "bin"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.store = Store(folder / "store")
        self.cloud = Cloud(region, moto)
        plugin = f'exec "{sys.executable}" -m tests.engine.stand_in_aws.plugin "$@"'
        self.executable("pulumi-resource-aws", f'#!/bin/sh\ncd "{ROOT}" && {plugin}\n')
        self.executable("aws", AWS_CLI)

    def executable(self, name: str, text: str) -> None:
        """Put a program on the engine's PATH."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def stand_in_cluster(self) -> None:
        """Have Kubernetes' provider stood in for, too; what it makes is in `cluster.json`."""
        provider = Path(__file__).parent / "stand_in_provider.py"
        script = f'#!/bin/sh\nexec "{sys.executable}" "{provider}" "$@"\n'
        self.executable("pulumi-resource-kubernetes", script)
        self._others["STAND_IN_CLUSTER"] = str(self.folder / "cluster.json")

    def lead_to(self, kubeconfig: str) -> None:
        """Have every EKS cluster be the one of a kubeconfig, with its certificate or token.

        A kubeconfig made of the cluster's outputs asks `aws eks get-token`, which answers with the
        credential of this one.
        """
        config = yaml.safe_load(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        names = {
            "token": "token",
            "clientCertificateData": "client-certificate-data",
            "clientKeyData": "client-key-data",
        }
        status = {name: user[key] for name, key in names.items() if key in user}
        for name in set(status) - {"token"}:
            status[name] = base64.b64decode(status[name]).decode()
        credential = self.folder / "credential.json"
        version = "client.authentication.k8s.io/v1beta1"
        said = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        credential.write_text(json.dumps(said))
        self._others |= {
            "STAND_IN_KUBE_SERVER": cluster["server"],
            "STAND_IN_KUBE_CA": cluster.get("certificate-authority-data", ""),
            "STAND_IN_KUBE_CREDENTIAL": str(credential),
        }

    @property
    def environment(self) -> dict[str, str]:
        """Return what the engine's processes must have in their environment."""
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "for tests only",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL": self.moto,
            "AWS_ACCESS_KEY_ID": "stand-in",
            "AWS_SECRET_ACCESS_KEY": "stand-in",
            "STAND_IN_AWS_ENDPOINT": self.moto,
            "STAND_IN_AWS_STORE": str(self.folder / "store"),
            "STAND_IN_AWS_CACHE": str(self._cache),
            **self._others,
        }

    def stack(
        self, name: str, program: Program, project: str = "llm-platform", **config: Any
    ) -> automation.Stack:
        """Select a stack, made when it isn't there, with this program and these settings.

        A setting's name without a colon is the project's; `aws:defaultTags` and the like are the
        provider's.
        """
        stack = automation.create_or_select_stack(
            name,
            project_name=project,
            program=program,
            opts=automation.LocalWorkspaceOptions(env_vars=self.environment),
        )
        settings = {
            (key if ":" in key else f"{project}:{key}"): automation.ConfigValue(
                value=value if isinstance(value, str) else json.dumps(value)
            )
            for key, value in {"aws:region": self.region, **config}.items()
        }
        stack.set_all_config(settings)
        return stack

    @property
    def log(self) -> list[str]:
        """Return what was asked of the provider, in order: `create sqs/queue:Queue <id>`."""
        return self.store.kept()["log"]

    def objects(self, *types: str) -> list[Record]:
        """Return what the provider has made and not deleted: `sqs/queue:Queue`."""
        return self.store.objects(*(f"aws:{name}" for name in types))

    def goes_wrong(self, when: str, type_: str) -> None:
        """Have the next create of a type go wrong.

        `before`: refused, nothing made. `half`: made, a step after it fails. `dies`: the provider
        is killed when the cloud has made it and before anybody was told.
        """
        self.store.order_fault(when, f"aws:{type_}")

    @property
    def account(self) -> str:
        """Return the account's number: moto has only this one."""
        return ACCOUNT

    def call(self, service: str, operation: str, **params: Any) -> dict[str, Any]:
        """Make a call to the account, as anybody outside of Pulumi would."""
        return self.cloud.call(service, operation, params)

    def inventory(self) -> dict[str, list[str]]:
        """Return what moto has, by kind; what the account has from its first day is left out."""
        return inventory(self.cloud)


# What to list, and a JMESPath over the answer to what counts as there.
LISTED: tuple[tuple[str, str, str], ...] = (
    ("ec2", "DescribeVpcs", "Vpcs[?!IsDefault].VpcId"),
    ("ec2", "DescribeSubnets", "Subnets[?!DefaultForAz].SubnetId"),
    ("ec2", "DescribeSecurityGroups", "SecurityGroups[?GroupName!='default'].GroupId"),
    ("ec2", "DescribeInternetGateways", "InternetGateways[].InternetGatewayId"),
    ("ec2", "DescribeNatGateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    ("ec2", "DescribeAddresses", "Addresses[].AllocationId"),
    ("ec2", "DescribeVpcEndpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    ("ec2", "DescribeLaunchTemplates", "LaunchTemplates[].LaunchTemplateId"),
    ("ec2", "DescribeFlowLogs", "FlowLogs[].FlowLogId"),
    ("eks", "ListClusters", "clusters"),
    ("autoscaling", "DescribeAutoScalingGroups", "AutoScalingGroups[].AutoScalingGroupName"),
    ("iam", "ListRoles", "Roles[].RoleName"),
    ("iam", "ListPolicies", "Policies[?!starts_with(Arn, 'arn:aws:iam::aws:')].Arn"),
    ("iam", "ListInstanceProfiles", "InstanceProfiles[].InstanceProfileName"),
    ("kms", "ListAliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
    ("rds", "DescribeDBInstances", "DBInstances[].DBInstanceIdentifier"),
    ("rds", "DescribeDBClusters", "DBClusters[].DBClusterIdentifier"),
    ("rds", "DescribeDBSubnetGroups", "DBSubnetGroups[].DBSubnetGroupName"),
    (
        "elasticache",
        "DescribeReplicationGroups",
        "ReplicationGroups[?Status!='deleting'].ReplicationGroupId",
    ),
    ("elasticache", "DescribeUsers", "Users[?UserId!='default' && Status!='deleting'].UserId"),
    ("s3", "ListBuckets", "Buckets[].Name"),
    ("ecr", "DescribeRepositories", "repositories[].repositoryName"),
    ("sqs", "ListQueues", "QueueUrls"),
    ("secretsmanager", "ListSecrets", "SecretList[?!DeletedDate].Name"),
    ("elbv2", "DescribeLoadBalancers", "LoadBalancers[].LoadBalancerArn"),
    ("elbv2", "DescribeTargetGroups", "TargetGroups[].TargetGroupArn"),
    ("acm", "ListCertificates", "CertificateSummaryList[].CertificateArn"),
    ("route53", "ListHostedZones", "HostedZones[].Id"),
    ("logs", "DescribeLogGroups", "logGroups[].logGroupName"),
    ("events", "ListRules", "Rules[].Name"),
    ("cloudwatch", "DescribeAlarms", "MetricAlarms[].AlarmName"),
    ("fsx", "DescribeFileSystems", "FileSystems[].FileSystemId"),
)


def inventory(cloud: Cloud) -> dict[str, list[str]]:
    """Return what an account has, by the call that lists it; only kinds of which there is any."""
    import jmespath

    found = {
        f"{service} {operation}": jmespath.search(path, cloud.call(service, operation, {})) or []
        for service, operation, path in LISTED
    }
    aliases = cloud.call("kms", "ListAliases", {})["Aliases"]
    of_aws = {a.get("TargetKeyId") for a in aliases if a["AliasName"].startswith("alias/aws/")}
    for key in cloud.call("kms", "ListKeys", {})["Keys"]:
        known = cloud.call("kms", "DescribeKey", {"KeyId": key["KeyId"]})["KeyMetadata"]
        if known["KeyState"] != "PendingDeletion" and key["KeyId"] not in of_aws:
            found.setdefault("kms ListKeys", []).append(key["KeyId"])
    return {name: sorted(listed) for name, listed in found.items() if listed}
