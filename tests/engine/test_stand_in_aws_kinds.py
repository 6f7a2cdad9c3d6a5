"""Each entry of the stand-in's table, without the engine: made, looked up, tagged, deleted."""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from tests.engine.aws_harness import REGION, AwsEngine, inventory, moto_server
from tests.engine.stand_in_aws import sdk
from tests.engine.stand_in_aws.invokes import invoke
from tests.engine.stand_in_aws.kinds import KINDS
from tests.engine.stand_in_aws.kinds.base import Call
from tests.engine.stand_in_aws.lifecycle import Lifecycle, Naming, Settings, Was
from tests.engine.stand_in_aws.moto import Cloud, CloudError
from tests.engine.stand_in_aws.plugin import Provider, said
from tests.engine.stand_in_aws.store import Store
from tests.engine.stand_in_aws.values import UNKNOWN, Properties, filled

pytestmark = pytest.mark.timeout(300)


def policy(action: str = "s3:GetObject", **more: Any) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*", **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def trust(service: str) -> str:
    statement = {
        "Effect": "Allow",
        "Action": ["sts:AssumeRole"],
        "Principal": {"Service": service},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


BLOCK = "arn:aws:iam::123456789012:root"
KEY_POLICY = policy("kms:*", Principal={"AWS": BLOCK})
SERVICE = {"Principal": {"Service": "sqs.amazonaws.com"}}

# One of each type, in an order in which each finds what it needs; `{vpc.id}` is of another one.
SAMPLES: tuple[tuple[str, str, Properties], ...] = (
    ("vpc", "ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True}),
    ("a", "ec2/subnet:Subnet", {"vpcId": "{vpc.id}", "cidrBlock": "10.0.0.0/24",
                                "availabilityZone": "us-east-1a"}),
    ("b", "ec2/subnet:Subnet", {"vpcId": "{vpc.id}", "cidrBlock": "10.0.1.0/24",
                                "availabilityZone": "us-east-1b", "mapPublicIpOnLaunch": True}),
    ("igw", "ec2/internetGateway:InternetGateway", {"vpcId": "{vpc.id}"}),
    ("eip", "ec2/eip:Eip", {"domain": "vpc"}),
    ("nat", "ec2/natGateway:NatGateway", {"subnetId": "{a.id}", "allocationId": "{eip.id}"}),
    ("table", "ec2/routeTable:RouteTable", {"vpcId": "{vpc.id}"}),
    ("route", "ec2/route:Route", {"routeTableId": "{table.id}", "natGatewayId": "{nat.id}",
                                  "destinationCidrBlock": "0.0.0.0/0"}),
    ("public", "ec2/routeTable:RouteTable", {"vpcId": "{vpc.id}", "routes": [
        {"cidrBlock": "0.0.0.0/0", "gatewayId": "{igw.id}"}]}),
    ("association", "ec2/routeTableAssociation:RouteTableAssociation",
     {"routeTableId": "{table.id}", "subnetId": "{a.id}"}),
    ("group", "ec2/securityGroup:SecurityGroup", {"vpcId": "{vpc.id}", "ingress": [
        {"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["10.0.0.0/16"]}]}),
    ("own", "ec2/defaultSecurityGroup:DefaultSecurityGroup", {"vpcId": "{vpc.id}"}),
    ("ingress", "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
     {"securityGroupId": "{group.id}", "ipProtocol": "tcp", "fromPort": 80, "toPort": 80,
      "cidrIpv4": "10.0.0.0/16"}),
    ("egress", "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
     {"securityGroupId": "{group.id}", "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}),
    ("s3_endpoint", "ec2/vpcEndpoint:VpcEndpoint",
     {"vpcId": "{vpc.id}", "serviceName": "com.amazonaws.us-east-1.s3",
      "vpcEndpointType": "Gateway", "routeTableIds": ["{table.id}"], "policy": policy()}),
    ("sqs_endpoint", "ec2/vpcEndpoint:VpcEndpoint",
     {"vpcId": "{vpc.id}", "serviceName": "com.amazonaws.us-east-1.sqs",
      "vpcEndpointType": "Interface", "subnetIds": ["{a.id}", "{b.id}"],
      "securityGroupIds": ["{group.id}"], "privateDnsEnabled": True}),
    ("endpoint_table", "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
     {"vpcEndpointId": "{s3_endpoint.id}", "routeTableId": "{public.id}"}),
    ("logs", "cloudwatch/logGroup:LogGroup", {"name": "/aws/eks/dev", "retentionInDays": 30}),
    ("log_role", "iam/role:Role", {"assumeRolePolicy": trust("vpc-flow-logs.amazonaws.com")}),
    ("flow", "ec2/flowLog:FlowLog", {"vpcId": "{vpc.id}", "trafficType": "REJECT",
                                     "logDestination": "{logs.state.arn}",
                                     "iamRoleArn": "{log_role.state.arn}"}),
    ("tag", "ec2/tag:Tag", {"resourceId": "{a.id}", "key": "kubernetes.io/role/elb",
                            "value": "1"}),
    ("boundary", "iam/policy:Policy", {"policy": policy(), "description": "what a team may"}),
    ("cluster_role", "iam/role:Role", {"assumeRolePolicy": trust("eks.amazonaws.com"),
                                       "permissionsBoundary": "{boundary.id}",
                                       "inlinePolicies": [{"name": "own", "policy": policy()}]}),
    ("node_role", "iam/role:Role", {"assumeRolePolicy": trust("ec2.amazonaws.com")}),
    ("pod_role", "iam/role:Role", {"assumeRolePolicy": trust("pods.eks.amazonaws.com")}),
    ("attached", "iam/rolePolicyAttachment:RolePolicyAttachment",
     {"role": "{cluster_role.id}", "policyArn": "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}),
    ("inline", "iam/rolePolicy:RolePolicy", {"role": "{pod_role.id}", "policy": policy()}),
    ("profile", "iam/instanceProfile:InstanceProfile", {"role": "{node_role.id}"}),
    ("linked", "iam/serviceLinkedRole:ServiceLinkedRole",
     {"awsServiceName": "spot.amazonaws.com"}),
    ("key", "kms/key:Key", {"description": "dev", "enableKeyRotation": True,
                            "deletionWindowInDays": 7, "policy": KEY_POLICY}),
    ("alias", "kms/alias:Alias", {"name": "alias/dev", "targetKeyId": "{key.id}"}),
    ("key_policy", "kms/keyPolicy:KeyPolicy", {"keyId": "{key.id}", "policy": KEY_POLICY}),
    ("grant", "kms/grant:Grant", {"keyId": "{key.id}", "operations": ["Decrypt"],
                                  "granteePrincipal": "{pod_role.state.arn}"}),
    ("cluster", "eks/cluster:Cluster",
     {"roleArn": "{cluster_role.state.arn}", "version": "1.35", "bootstrapSelfManagedAddons": False,
      "vpcConfig": {"subnetIds": ["{a.id}", "{b.id}"], "endpointPrivateAccess": True,
                    "endpointPublicAccess": False},
      "accessConfig": {"authenticationMode": "API",
                       "bootstrapClusterCreatorAdminPermissions": False},
      "upgradePolicy": {"supportType": "STANDARD"}, "zonalShiftConfig": {"enabled": True},
      "enabledClusterLogTypes": ["api", "audit"],
      "encryptionConfig": {"provider": {"keyArn": "{key.state.arn}"}, "resources": ["secrets"]}}),
    ("template", "ec2/launchTemplate:LaunchTemplate",
     {"updateDefaultVersion": True, "userData": "aGVsbG8=",
      "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
      "vpcSecurityGroupIds": ["{group.id}"],
      "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {
          "volumeSize": 100, "volumeType": "gp3", "encrypted": "true", "throughput": 600}}],
      "tagSpecifications": [{"resourceType": "instance", "tags": {"pool": "h100"}}]}),
    ("nodes", "eks/nodeGroup:NodeGroup",
     {"clusterName": "{cluster.id}", "nodeRoleArn": "{node_role.state.arn}",
      "subnetIds": ["{a.id}"], "amiType": "AL2023_x86_64_NVIDIA", "instanceTypes": ["g6e.xlarge"],
      "capacityType": "ON_DEMAND", "labels": {"accelerator": "l40s"},
      "launchTemplate": {"id": "{template.id}", "version": "1"},
      "scalingConfig": {"minSize": 0, "maxSize": 4, "desiredSize": 0},
      "updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"},
      "nodeRepairConfig": {"enabled": True},
      "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]}),
    ("scaling", "autoscaling/tag:Tag",
     {"autoscalingGroupName": "{nodes.state.resources[0].autoscalingGroups[0].name}",
      "tag": {"key": "k8s.io/cluster-autoscaler/node-template/label/accelerator",
              "value": "l40s", "propagateAtLaunch": False}}),
    ("addon", "eks/addon:Addon", {"clusterName": "{cluster.id}", "addonName": "vpc-cni",
                                  "resolveConflictsOnCreate": "OVERWRITE",
                                  "resolveConflictsOnUpdate": "PRESERVE",
                                  "configurationValues": '{"env": {}}'}),
    ("entry", "eks/accessEntry:AccessEntry", {"clusterName": "{cluster.id}", "type": "STANDARD",
                                              "principalArn": "{pod_role.state.arn}"}),
    ("access", "eks/accessPolicyAssociation:AccessPolicyAssociation",
     {"clusterName": "{cluster.id}", "principalArn": "{pod_role.state.arn}",
      "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
      "accessScope": {"type": "cluster"}}),
    ("pod", "eks/podIdentityAssociation:PodIdentityAssociation",
     {"clusterName": "{cluster.id}", "namespace": "llm-platform", "serviceAccount": "gateway",
      "roleArn": "{pod_role.state.arn}"}),
    ("placement", "ec2/placementGroup:PlacementGroup", {"strategy": "cluster"}),
    ("reservation", "ec2/capacityReservation:CapacityReservation",
     {"availabilityZone": "us-east-1a", "instanceCount": 1, "instancePlatform": "Linux/UNIX",
      "instanceType": "g6e.xlarge"}),
    ("block", "ec2/capacityBlockReservation:CapacityBlockReservation",
     {"capacityBlockOfferingId": "cb-0123456789abcdefg", "instancePlatform": "Linux/UNIX"}),
    ("db_subnets", "rds/subnetGroup:SubnetGroup", {"subnetIds": ["{a.id}", "{b.id}"]}),
    ("db_parameters", "rds/parameterGroup:ParameterGroup",
     {"family": "postgres17", "parameters": [{"name": "rds.force_ssl", "value": "1"}]}),
    ("cluster_parameters", "rds/clusterParameterGroup:ClusterParameterGroup",
     {"family": "aurora-postgresql17",
      "parameters": [{"name": "rds.force_ssl", "value": "1"}]}),
    ("db", "rds/instance:Instance",
     {"instanceClass": "db.t4g.medium", "engine": "postgres", "engineVersion": "17.6",
      "allocatedStorage": 20, "dbName": "platform", "username": "platform",
      "manageMasterUserPassword": True, "masterUserSecretKmsKeyId": "{key.id}",
      "storageEncrypted": True, "kmsKeyId": "{key.state.arn}", "skipFinalSnapshot": True,
      "dbSubnetGroupName": "{db_subnets.id}", "vpcSecurityGroupIds": ["{group.id}"],
      "parameterGroupName": "{db_parameters.id}", "iamDatabaseAuthenticationEnabled": True,
      "backupRetentionPeriod": 7, "enabledCloudwatchLogsExports": ["postgresql"]}),
    ("aurora", "rds/cluster:Cluster",
     {"engine": "aurora-postgresql", "engineVersion": "17.5", "databaseName": "platform",
      "masterUsername": "platform", "manageMasterUserPassword": True,
      "dbSubnetGroupName": "{db_subnets.id}", "skipFinalSnapshot": True,
      "dbClusterParameterGroupName": "{cluster_parameters.id}",
      "serverlessv2ScalingConfiguration": {"minCapacity": 0.5, "maxCapacity": 4},
      "storageEncrypted": True}),
    ("aurora_one", "rds/clusterInstance:ClusterInstance",
     {"clusterIdentifier": "{aurora.id}", "engine": "aurora-postgresql",
      "instanceClass": "db.serverless"}),
    ("cache_subnets", "elasticache/subnetGroup:SubnetGroup", {"subnetIds": ["{a.id}", "{b.id}"]}),
    ("cache_parameters", "elasticache/parameterGroup:ParameterGroup",
     {"family": "valkey8", "parameters": [{"name": "maxmemory-policy", "value": "noeviction"}]}),
    ("user", "elasticache/user:User",
     {"userId": "dev-platform", "userName": "platform", "engine": "valkey",
      "accessString": "on ~* +@all", "authenticationMode": {
          "type": "password", "passwords": ["0123456789abcdef0123"]}}),
    ("users", "elasticache/userGroup:UserGroup", {"userGroupId": "dev", "engine": "valkey",
                                                  "userIds": ["{user.id}"]}),
    ("other_user", "elasticache/user:User",
     {"userId": "dev-scaler", "userName": "scaler", "engine": "valkey",
      "accessString": "on ~* +llen", "passwords": ["0123456789abcdef0123"]}),
    ("member", "elasticache/userGroupAssociation:UserGroupAssociation",
     {"userGroupId": "{users.id}", "userId": "{other_user.id}"}),
    ("valkey", "elasticache/replicationGroup:ReplicationGroup",
     {"description": "dev", "engine": "valkey", "engineVersion": "8.1",
      "nodeType": "cache.t4g.small", "numCacheClusters": 2, "automaticFailoverEnabled": True,
      "multiAzEnabled": True, "transitEncryptionEnabled": True, "atRestEncryptionEnabled": True,
      "subnetGroupName": "{cache_subnets.id}", "securityGroupIds": ["{group.id}"],
      "parameterGroupName": "{cache_parameters.id}", "userGroupIds": ["{users.id}"]}),
    ("bucket", "s3/bucket:Bucket", {"forceDestroy": True}),
    ("versioning", "s3/bucketVersioning:BucketVersioning",
     {"bucket": "{bucket.id}", "versioningConfiguration": {"status": "Enabled"}}),
    ("sse", "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
     {"bucket": "{bucket.id}", "rules": [{
         "applyServerSideEncryptionByDefault": {
             "sseAlgorithm": "aws:kms", "kmsMasterKeyId": "{key.state.arn}"},
         "bucketKeyEnabled": True}]}),
    ("public_block", "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
     {"bucket": "{bucket.id}", "blockPublicAcls": True, "blockPublicPolicy": True,
      "ignorePublicAcls": True, "restrictPublicBuckets": True}),
    ("owner", "s3/bucketOwnershipControls:BucketOwnershipControls",
     {"bucket": "{bucket.id}", "rule": {"objectOwnership": "BucketOwnerEnforced"}}),
    ("bucket_policy", "s3/bucketPolicy:BucketPolicy",
     {"bucket": "{bucket.id}", "policy": "{bucket_statement}"}),
    ("expiry", "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
     {"bucket": "{bucket.id}", "rules": [
         {"id": "old", "status": "Enabled", "filter": {"prefix": "results/"},
          "expiration": {"days": 14},
          "abortIncompleteMultipartUpload": {"daysAfterInitiation": 3},
          "noncurrentVersionExpiration": {"noncurrentDays": 7}}]}),
    ("cors", "s3/bucketCorsConfiguration:BucketCorsConfiguration",
     {"bucket": "{bucket.id}", "corsRules": [
         {"allowedMethods": ["GET"], "allowedOrigins": ["https://example.com"]}]}),
    ("logged", "s3/bucket:Bucket", {"forceDestroy": True}),
    ("log_policy", "s3/bucketPolicy:BucketPolicy",
     {"bucket": "{logged.id}", "policy": "{log_statement}"}),
    ("access_log", "s3/bucketLogging:BucketLogging",
     {"bucket": "{bucket.id}", "targetBucket": "{logged.id}", "targetPrefix": "log/"}),
    ("object", "s3/bucketObjectv2:BucketObjectv2",
     {"bucket": "{bucket.id}", "key": "hello.txt", "content": "hello"}),
    ("older_object", "s3/bucketObject:BucketObject",
     {"bucket": "{bucket.id}", "key": "older.txt", "content": "hello"}),
    ("express", "s3/directoryBucket:DirectoryBucket",
     {"bucket": "dev--use1-az4--x-s3", "location": {"name": "use1-az4",
                                                    "type": "AvailabilityZone"}}),
    ("repository", "ecr/repository:Repository",
     {"name": "dev/services", "imageTagMutability": "IMMUTABLE_WITH_EXCLUSION",
      "imageTagMutabilityExclusionFilters": [{"filter": "cache*", "filterType": "WILDCARD"}],
      "imageScanningConfiguration": {"scanOnPush": True},
      "encryptionConfigurations": [{"encryptionType": "KMS", "kmsKey": "{key.state.arn}"}]}),
    ("images", "ecr/lifecyclePolicy:LifecyclePolicy",
     {"repository": "{repository.id}", "policy": json.dumps({"rules": [
         {"rulePriority": 1, "description": "untagged", "action": {"type": "expire"},
          "selection": {"tagStatus": "untagged", "countType": "sinceImagePushed",
                        "countUnit": "days", "countNumber": 7}}]})}),
    ("pullers", "ecr/repositoryPolicy:RepositoryPolicy",
     {"repository": "{repository.id}",
      "policy": json.dumps({"Version": "2012-10-17", "Statement": [
          {"Sid": "pull", "Effect": "Allow", "Principal": {"AWS": BLOCK},
           "Action": "ecr:BatchGetImage"}]})}),
    ("hub", "ecr/pullThroughCacheRule:PullThroughCacheRule",
     {"ecrRepositoryPrefix": "dev/quay", "upstreamRegistryUrl": "quay.io"}),
    ("hub_template", "ecr/repositoryCreationTemplate:RepositoryCreationTemplate",
     {"prefix": "dev/quay", "appliedFors": ["PULL_THROUGH_CACHE"],
      "imageTagMutability": "IMMUTABLE"}),
    ("scanning", "ecr/registryScanningConfiguration:RegistryScanningConfiguration",
     {"scanType": "ENHANCED", "rules": [
         {"scanFrequency": "SCAN_ON_PUSH",
          "repositoryFilters": [{"filter": "*", "filterType": "WILDCARD"}]}]}),
    ("registry_policy", "ecr/registryPolicy:RegistryPolicy",
     {"policy": json.dumps({"Version": "2012-10-17", "Statement": [
         {"Sid": "replicate", "Effect": "Allow", "Principal": {"AWS": BLOCK},
          "Action": ["ecr:ReplicateImage"], "Resource": "*"}]})}),
    ("dead", "sqs/queue:Queue", {"messageRetentionSeconds": 1_209_600,
                                 "sqsManagedSseEnabled": True}),
    ("queue", "sqs/queue:Queue",
     {"name": "dev-search-summarizer", "visibilityTimeoutSeconds": 300,
      "redrivePolicy": "{redrive}", "tags": {"team": "search"}}),
    ("allow", "sqs/redriveAllowPolicy:RedriveAllowPolicy",
     {"queueUrl": "{dead.id}", "redriveAllowPolicy": "{redrive_allow}"}),
    ("redrive_policy", "sqs/redrivePolicy:RedrivePolicy",
     {"queueUrl": "{queue.id}", "redrivePolicy": "{redrive}"}),
    ("queue_policy", "sqs/queuePolicy:QueuePolicy",
     {"queueUrl": "{queue.id}", "policy": policy("sqs:SendMessage", **SERVICE)}),
    ("notification", "s3/bucketNotification:BucketNotification",
     {"bucket": "{bucket.id}", "queues": [{"id": "new", "queueArn": "{queue.state.arn}",
                                           "events": ["s3:ObjectCreated:*"]}]}),
    ("secret", "secretsmanager/secret:Secret", {"name": "dev/redis", "kmsKeyId": "{key.id}",
                                                "recoveryWindowInDays": 0}),
    ("secret_value", "secretsmanager/secretVersion:SecretVersion",
     {"secretId": "{secret.id}", "secretString": "{}"}),
    ("secret_policy", "secretsmanager/secretPolicy:SecretPolicy",
     {"secretArn": "{secret.id}",
      "policy": policy("secretsmanager:GetSecretValue", Principal={"AWS": BLOCK})}),
    ("lustre", "fsx/lustreFileSystem:LustreFileSystem",
     {"subnetIds": "{a.id}", "storageCapacity": 1200, "deploymentType": "PERSISTENT_2",
      "storageType": "SSD", "perUnitStorageThroughput": 1000, "securityGroupIds": ["{group.id}"]}),
    ("imported", "fsx/dataRepositoryAssociation:DataRepositoryAssociation",
     {"fileSystemId": "{lustre.id}", "fileSystemPath": "/weights",
      "dataRepositoryPath": "s3://{bucket.id}/weights"}),
    ("zone", "route53/zone:Zone", {"name": "llm.example.com"}),
    ("certificate", "acm/certificate:Certificate",
     {"domainName": "llm.example.com", "validationMethod": "DNS"}),
    ("proof", "route53/record:Record",
     {"zoneId": "{zone.state.zoneId}", "ttl": 60,
      "name": "{certificate.state.domainValidationOptions[0].resourceRecordName}",
      "type": "CNAME",
      "records": ["{certificate.state.domainValidationOptions[0].resourceRecordValue}"]}),
    ("validated", "acm/certificateValidation:CertificateValidation",
     {"certificateArn": "{certificate.id}"}),
    ("balancer", "lb/loadBalancer:LoadBalancer",
     {"internal": True, "loadBalancerType": "application", "subnets": ["{a.id}", "{b.id}"],
      "securityGroups": ["{group.id}"], "idleTimeout": 660}),
    ("targets", "lb/targetGroup:TargetGroup",
     {"port": 8080, "protocol": "HTTP", "targetType": "ip", "vpcId": "{vpc.id}",
      "deregistrationDelay": 60, "healthCheck": {"path": "/readyz", "interval": 10}}),
    ("listener", "lb/listener:Listener",
     {"loadBalancerArn": "{balancer.id}", "port": 443, "protocol": "HTTPS",
      "certificateArn": "{certificate.id}", "sslPolicy": "ELBSecurityPolicy-TLS13-1-2-2021-06",
      "defaultActions": [{"type": "forward", "targetGroupArn": "{targets.id}"}]}),
    ("rule", "lb/listenerRule:ListenerRule",
     {"listenerArn": "{listener.id}", "priority": 10,
      "conditions": [{"pathPattern": {"values": ["/v1/*"]}}],
      "actions": [{"type": "forward", "targetGroupArn": "{targets.id}"}]}),
    ("event", "cloudwatch/eventRule:EventRule",
     {"eventPattern": json.dumps({"source": ["aws.ec2"]})}),
    ("event_target", "cloudwatch/eventTarget:EventTarget",
     {"rule": "{event.id}", "arn": "{queue.state.arn}"}),
    ("alarm", "cloudwatch/metricAlarm:MetricAlarm",
     {"comparisonOperator": "GreaterThanThreshold", "evaluationPeriods": 2, "threshold": 0.5,
      "metricName": "ApproximateAgeOfOldestMessage", "namespace": "AWS/SQS", "period": 60,
      "statistic": "Maximum", "dimensions": {"QueueName": "dev-search-summarizer"}}),
    ("dashboard", "cloudwatch/dashboard:Dashboard",
     {"dashboardName": "dev", "dashboardBody": '{"widgets": []}'}),
    ("parameter", "ssm/parameter:Parameter", {"type": "String", "value": "x", "name": "/dev/x"}),
    ("vault", "backup/vault:Vault", {"kmsKeyArn": "{key.state.arn}"}),
    ("plan", "backup/plan:Plan", {"rules": [
        {"ruleName": "daily", "targetVaultName": "{vault.id}", "schedule": "cron(0 3 * * ? *)",
         "lifecycle": {"deleteAfter": 35}}]}),
    ("selection", "backup/selection:Selection",
     {"planId": "{plan.id}", "iamRoleArn": "{pod_role.state.arn}",
      "resources": ["arn:aws:rds:us-east-1:123456789012:db:*"]}),
    ("build", "codebuild/project:Project",
     {"serviceRole": "{pod_role.state.arn}", "artifacts": {"type": "NO_ARTIFACTS"},
      "environment": {"computeType": "BUILD_GENERAL1_SMALL", "privilegedMode": True,
                      "image": "aws/codebuild/amazonlinux2-x86_64-standard:5.0",
                      "type": "LINUX_CONTAINER"},
      "source": {"type": "S3", "location": "{bucket.id}/context.zip"}}),
)  # fmt: skip


MENTION = re.compile(r"\{[\w.\[\]]+\}")


def wired(value: Any, facts: dict[str, Any]) -> Any:
    """Fill in what a sample mentions of others; its JSON stays as it is."""
    if isinstance(value, dict):
        return {key: wired(inside, facts) for key, inside in value.items()}
    if isinstance(value, list):
        return [wired(inside, facts) for inside in value]
    return filled(value, facts) if isinstance(value, str) and MENTION.search(value) else value


class Account:
    """Does to resources what the engine would, and keeps what it would keep."""

    def __init__(self, folder: Path, address: str, **tags: str) -> None:
        self.store = Store(folder)
        self.settings = Settings(REGION, tags)
        self.lifecycle = Lifecycle(self.store, self.settings)
        self.cloud = Cloud(REGION, address)
        self.made: dict[str, dict[str, Any]] = {}

    def facts(self) -> dict[str, Any]:
        """Return what samples may mention of others."""
        bucket = self.made.get("bucket", {}).get("id")
        dead = self.made.get("dead", {}).get("state", {}).get("arn")
        secure = {"Bool": {"aws:SecureTransport": "false"}}
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
            "Condition": secure,
        }
        logged = {
            "Effect": "Allow",
            "Principal": {"Service": "logging.s3.amazonaws.com"},
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{self.made.get('logged', {}).get('id')}/log/*",
        }
        return {
            **self.made,
            "log_statement": json.dumps({"Version": "2012-10-17", "Statement": [logged]}),
            "bucket_statement": json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
            "redrive": json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": 5}),
            "redrive_allow": json.dumps({"redrivePermission": "allowAll"}),
        }

    def urn(self, name: str, token: str) -> str:
        return f"urn:pulumi:dev::llm::aws:{token}::{name}"

    def check(self, name: str, token: str, inputs: Properties) -> Any:
        seed = hashlib.sha256(name.encode()).digest()
        return self.lifecycle.check(
            f"aws:{token}", {}, inputs, Naming(f"dev-{name.replace(chr(95), chr(45))}", seed)
        )

    def make(self, name: str, token: str, inputs: Properties) -> dict[str, Any]:
        checked, refused = self.check(name, token, wired(inputs, self.facts()))
        assert refused == [], name
        object_id, state = self.lifecycle.create(self.urn(name, token), f"aws:{token}", checked)
        self.made[name] = {"id": object_id, "token": token, "inputs": checked, "state": state}
        return self.made[name]

    def was(self, name: str) -> Was:
        one = self.made[name]
        return Was(self.urn(name, one["token"]), one["id"], one["inputs"], one["state"])

    def delete(self, name: str) -> None:
        self.lifecycle.delete(f"aws:{self.made[name]['token']}", self.was(name))
        del self.made[name]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def _environment(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAND_IN_AWS_ENDPOINT", address)
        patch.setenv("STAND_IN_AWS_CACHE", str(tmp_path_factory.getbasetemp() / "sdk"))
        yield


@pytest.fixture(scope="module")
def account(address: str, tmp_path_factory: pytest.TempPathFactory) -> Account:
    """An account that has one of each type."""
    account = Account(tmp_path_factory.mktemp("account"), address, project="llm-platform")
    for name, token, inputs in SAMPLES:
        account.make(name, token, inputs)
    return account


def test_every_type_of_the_table_has_a_sample() -> None:
    assert {f"aws:{token}" for _, token, _ in SAMPLES} == set(KINDS)


def test_every_type_of_the_table_is_one_of_the_sdk() -> None:
    assert [token for token in KINDS if sdk.resource(token) is None] == []


def test_a_preview_refuses_nothing_while_what_it_needs_is_unknown() -> None:
    """The first preview of a whole platform: every wiring is unknown."""

    def blank(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: blank(inside) for key, inside in value.items()}
        if isinstance(value, list):
            return [blank(inside) for inside in value]
        return UNKNOWN if isinstance(value, str) and MENTION.search(value) else value

    account = Account(Path(), "")
    for name, token, inputs in SAMPLES:
        _, refused = account.check(name, token, blank(inputs))
        assert refused == [], name


def includes(state: Any, inputs: Any) -> bool:
    """Say whether outputs have all that was said; a nested object may have more."""
    if isinstance(inputs, dict):
        said = {key: value for key, value in inputs.items() if key != "__defaults"}
        return all(includes(state.get(key), value) for key, value in said.items())
    return state == inputs


WRONG: tuple[tuple[str, Properties, str, str], ...] = (
    ("eks/nodeGroup:NodeGroup", {"amiType": "AL2_NVIDIA"}, "amiType", "'AL2_NVIDIA' is none of"),
    ("ec2/placementGroup:PlacementGroup", {"strategy": "close"}, "strategy",
     "'close' is none of spread, cluster"),
    ("eks/nodeGroup:NodeGroup", {"scalingConfig": {"minSize": 0, "desiredSize": 0}},
     "scalingConfig.maxSize", "is required and missing"),
    ("eks/nodeGroup:NodeGroup", {"updateConfig": {"maxUnavailble": 1}},
     "updateConfig.maxUnavailble", "did you mean 'maxUnavailable'?"),
    ("eks/nodeGroup:NodeGroup", {"instanceType": ["g6e.xlarge"]}, "instanceType",
     "did you mean 'instanceTypes'?"),
    ("eks/nodeGroup:NodeGroup",
     {"scalingConfig": {"minSize": "none", "maxSize": 4, "desiredSize": 0}},
     "scalingConfig.minSize", "must be a integer, not 'none'"),
    ("eks/nodeGroup:NodeGroup", {"scalingConfig": {"minSize": 2, "maxSize": 4, "desiredSize": 0}},
     "scalingConfig.minSize", "must be between 0 and desiredSize"),
    ("eks/nodeGroup:NodeGroup", {"diskSize": 100}, "diskSize", "must stand in the launch template"),
    ("eks/nodeGroup:NodeGroup", {"nodeGroupName": "g" * 64}, "nodeGroupName", "at most 63"),
    ("eks/cluster:Cluster", {"name": "dev cluster"}, "name", "doesn't match"),
    ("eks/cluster:Cluster", {"upgradePolicy": {"supportType": "LONG"}},
     "upgradePolicy.supportType", "'LONG' is none of STANDARD, EXTENDED"),
    ("iam/role:Role", {"assumeRolePolicy": "{'Version': 1}"}, "assumeRolePolicy", "must be JSON"),
    ("iam/policy:Policy", {"policy": policy(Sid="x" * 7000)}, "policy", "at most 6144"),
    ("ec2/launchTemplate:LaunchTemplate", {"userData": "#!/bin/sh"}, "userData", "must be base64"),
    ("ec2/launchTemplate:LaunchTemplate", {"metadataOptions": {"httpTokens": "always"}},
     "metadataOptions.httpTokens", "is none of optional, required"),
    ("ec2/subnet:Subnet", {"cidrBlock": "10.0.0.1/24"}, "cidrBlock", "has host bits set"),
    ("rds/instance:Instance", {"instanceClass": "t4g.medium"}, "instanceClass", "begin with 'db.'"),
    ("rds/instance:Instance", {"password": "x"}, "password", "manageMasterUserPassword"),
    ("elasticache/replicationGroup:ReplicationGroup", {"replicationGroupId": "d" * 41},
     "replicationGroupId", "at most 40"),
    ("elasticache/replicationGroup:ReplicationGroup", {"transitEncryptionEnabled": False},
     "userGroupIds", "needs transitEncryptionEnabled"),
    ("elasticache/user:User", {"engine": "memcached"}, "engine", "is none of redis"),
    ("elasticache/user:User", {"authenticationMode": {"type": "password", "passwords": ["short"]}},
     "passwords", "from 16 to 128 characters"),
    ("sqs/queue:Queue", {"visibilityTimeoutSeconds": 50_000}, "visibilityTimeoutSeconds",
     "must be from 0 to 43200"),
    ("sqs/queue:Queue", {"redrivePolicy": json.dumps({"maxReceiveCount": 0})}, "redrivePolicy",
     "lacks deadLetterTargetArn"),
    ("sqs/queue:Queue", {"name": "q" * 81}, "name", "at most 80"),
    ("s3/bucket:Bucket", {"bucket": "Dev_Weights"}, "bucket", "doesn't match"),
    ("s3/bucket:Bucket", {"accelerationStatus": "Enabled"}, "accelerationStatus",
     "the stand-in sends it nowhere"),
    ("s3/bucketPolicy:BucketPolicy", {"bucket": "another"}, "policy", "isn't in the bucket"),
    ("ecr/pullThroughCacheRule:PullThroughCacheRule", {"upstreamRegistryUrl": "ghcr.io"},
     "credentialArn", "is needed for ghcr.io"),
    ("lb/targetGroup:TargetGroup", {"name": "t" * 33}, "name", "at most 32"),
    ("kms/key:Key", {"deletionWindowInDays": 3}, "deletionWindowInDays", "from 7 to 30"),
    ("cloudwatch/logGroup:LogGroup", {"retentionInDays": 31}, "retentionInDays", "is none of"),
    ("ec2/vpc:Vpc", {"tags": {"aws:own": "x"}}, "tags", "no key that AWS allows"),
)  # fmt: skip


def test_what_is_wrong_is_refused_before_anything_is_made_by_its_property(
    account: Account,
) -> None:
    for token, wrong, name, reason in WRONG:
        inputs = next(inputs for _, other, inputs in SAMPLES if other == token)
        _, refused = account.check("x", token, {**wired(inputs, account.facts()), **wrong})
        found = [said for prop, said in refused if prop == name and reason in said]
        assert found, (token, wrong, refused)


def test_a_name_that_would_be_too_long_once_made_up_is_refused(account: Account) -> None:
    long = Naming("a-target-group-of-some-endpoint", b"1")
    inputs = {"port": 80, "protocol": "HTTP", "vpcId": UNKNOWN}
    _, refused = account.lifecycle.check("aws:lb/targetGroup:TargetGroup", {}, inputs, long)
    assert [prop for prop, reason in refused if "has 39 characters" in reason] == ["name"]


def test_what_the_table_does_not_have_is_refused_by_its_name(account: Account) -> None:
    with pytest.raises(CloudError, match="no entry for aws:dynamodb/table:Table"):
        account.check("t", "dynamodb/table:Table", {})
    with pytest.raises(CloudError, match="no entry for aws:ec2/getEips:getEips"):
        invoke("aws:ec2/getEips:getEips", account.cloud, {})


class RefusalError(Exception):
    """What the engine would be told."""


class Asked:
    """A call of the protocol, as far as the provider looks at it."""

    def abort(self, _: Any, reason: str) -> None:
        raise RefusalError(reason)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"region": "us-east-1", "allowedAccountIds": '["999999999999"]'}, "not allowed: 1234567"),
        ({}, "missing required configuration: region"),
    ],
)
def test_a_provider_that_is_configured_wrongly_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Properties, reason: str
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    request = provider_pb2.ConfigureRequest(args=said(config))
    with pytest.raises(RefusalError, match=reason):
        Provider(Store(tmp_path)).Configure(request, Asked())


def test_a_provider_is_asked_for_nothing_that_the_sdk_does_not_know(tmp_path: Path) -> None:
    given = {"region": "us-east-1", "defaultTags": '{"tag": {}}', "allowed": "[]"}
    request = provider_pb2.CheckRequest(news=said(given))
    answer = Provider(Store(tmp_path)).CheckConfig(request, Asked())
    assert {failure.property for failure in answer.failures} == {"defaultTags.tag", "allowed"}


def test_a_cluster_can_be_led_to_another_with_its_credential(tmp_path: Path) -> None:
    engine = AwsEngine(tmp_path, "", tmp_path / "sdk")
    user = {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}
    cluster = {"server": "https://10.88.0.1:6443", "certificate-authority-data": "Q0E="}
    engine.lead_to(json.dumps({"clusters": [{"cluster": cluster}], "users": [{"user": user}]}))
    assert engine.environment["STAND_IN_KUBE_SERVER"] == "https://10.88.0.1:6443"
    assert engine.environment["STAND_IN_KUBE_CA"] == "Q0E="
    asked = [tmp_path / "bin/aws", "eks", "get-token", "--cluster-name", "dev-aws"]
    answer = subprocess.run(asked, env=engine.environment, capture_output=True, check=True)
    assert json.loads(answer.stdout)["status"] == {
        "clientCertificateData": "CERT",
        "clientKeyData": "KEY",
    }


REFUSED: tuple[tuple[str, Properties, str], ...] = (
    ("nodes", {"nodeRoleArn": "arn:aws:iam::123456789012:role/none"}, "could not be found"),
    ("nodes", {"nodeRoleArn": "{cluster_role.state.arn}"}, "doesn't trust ec2.amazonaws.com"),
    ("nodes", {"subnetIds": ["subnet-12345678"]}, "InvalidSubnetID.NotFound"),
    ("nodes", {"clusterName": "none"}, "No cluster found"),
    ("nodes", {"capacityType": "CAPACITY_BLOCK"}, "reservation in the launch template"),
    ("cluster", {"vpcConfig": {"subnetIds": ["{a.id}"]}}, "at least two different AZs"),
    ("pod", {"roleArn": "{node_role.state.arn}"}, "doesn't trust pods.eks.amazonaws.com"),
    ("pod", {}, "Association already exists"),
    ("access", {"principalArn": "{node_role.state.arn}"}, "could not be found"),
    ("cluster_role", {"permissionsBoundary": "arn:aws:iam::aws:policy/No"}, "does not exist"),
    ("attached", {"policyArn": "arn:aws:iam::aws:policy/AmazonEKSClustrPolicy"}, "NoSuchEntity"),
    ("key", {"policy": policy("kms:Decrypt")}, "allow you to update the key policy"),
    ("db_subnets", {"subnetIds": ["{a.id}"]}, "coverage requirement"),
    ("valkey", {"subnetGroupName": "none"}, "none not found"),
    ("queue", {"redrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:no", '
               '"maxReceiveCount": 5}'}, "does not exist|NonExistent|Invalid"),
    ("scaling", {"autoscalingGroupName": "none"}, "moto failed|not found"),
    ("users", {}, "already exists"),
)  # fmt: skip


def test_what_does_not_fit_what_is_there_is_refused_by_the_account(account: Account) -> None:
    samples = {name: (token, inputs) for name, token, inputs in SAMPLES}
    for name, wrong, reason in REFUSED:
        token, inputs = samples[name]
        said = wired({**inputs, **wrong}, account.facts())
        checked, refused = account.check(f"{name}-2", token, said)
        assert refused == [], name
        with pytest.raises(CloudError, match=reason):
            account.lifecycle.create(account.urn(f"{name}-2", token), f"aws:{token}", checked)


def test_everything_that_was_made_is_found_again_with_what_the_sdk_calls_for(
    account: Account,
) -> None:
    for name, token, _ in SAMPLES:
        found = account.lifecycle.read(f"aws:{token}", account.was(name))
        assert found is not None, name
        inputs, state = found
        assert inputs == account.made[name]["inputs"], name
        assert includes(state, inputs), name
        fields = sdk.resource(f"aws:{token}")["outputs"]["fields"]  # type: ignore[index]
        if "arn" in fields and name not in {"nat", "own"}:
            assert str(state["arn"]).startswith("arn:aws:"), name


def test_nothing_changes_when_the_same_is_said_again(account: Account) -> None:
    for name, token, _ in SAMPLES:
        inputs = account.made[name]["inputs"]
        change = account.lifecycle.diff(f"aws:{token}", account.was(name), inputs)
        assert change.changed == (), name


def test_other_default_tags_are_an_update_of_everything_that_has_tags(account: Account) -> None:
    account.settings.default_tags = {"project": "llm-platform", "owner": "platform"}
    for name, token, _ in SAMPLES:
        one, was = account.made[name], account.was(name)
        change = account.lifecycle.diff(f"aws:{token}", was, one["inputs"])
        assert change.replaces == (), name
        assert change.changed == (("tags",) if "tagsAll" in one["state"] else ()), name
        if change.changed:
            one["state"] = account.lifecycle.update(f"aws:{token}", was, one["inputs"])
            assert one["state"]["tagsAll"]["owner"] == "platform", name
    found = account.cloud.call("ec2", "DescribeVpcs", {"VpcIds": [account.made["vpc"]["id"]]})
    assert {"Key": "owner", "Value": "platform"} in found["Vpcs"][0]["Tags"]


def test_every_property_of_a_sample_has_a_known_change(account: Account) -> None:
    """For each the table says what a change does: nothing is guessed."""
    for name, token, _ in SAMPLES:
        inputs = account.made[name]["inputs"]
        for prop in set(inputs) - {"__defaults", "tags"}:
            changed = {**inputs, prop: UNKNOWN}
            change = account.lifecycle.diff(f"aws:{token}", account.was(name), changed)
            assert prop in change.changed, (name, prop)


IN_USE = {
    "vpc": "DependencyViolation",
    "a": "DependencyViolation",
    "group": "DependencyViolation",
    "cluster_role": "DeleteConflict",
    "boundary": "dependent object",
    "cluster": "ResourceInUseException",
    "db_subnets": "dependent object",
    "users": "dependent object",
    "targets": "dependent object",
    "certificate": "dependent object",
}


def test_what_is_in_use_is_not_deleted(account: Account) -> None:
    for name, reason in IN_USE.items():
        with pytest.raises(CloudError, match=reason):
            account.lifecycle.delete(f"aws:{account.made[name]['token']}", account.was(name))


def test_a_bucket_with_something_in_it_is_deleted_only_when_that_is_wished(
    account: Account,
) -> None:
    bucket = account.make("full", "s3/bucket:Bucket", {})
    account.cloud.call("s3", "PutObject", {"Bucket": bucket["id"], "Key": "x", "Body": b"x"})
    with pytest.raises(CloudError, match="BucketNotEmpty"):
        account.lifecycle.delete("aws:s3/bucket:Bucket", account.was("full"))
    bucket["state"]["forceDestroy"] = True
    account.delete("full")


def test_after_deleting_in_the_reverse_order_nothing_is_left(account: Account) -> None:
    for name, _, _ in reversed(SAMPLES):
        account.delete(name)
    assert account.store.objects() == []
    assert inventory(account.cloud) == {}


def test_what_moto_has_is_called_and_only_what_it_lacks_is_checked_alone() -> None:
    """When a newer moto has a call, the entry should make it."""
    lacking = {
        "elasticache CreateCacheSubnetGroup",  # moto makes one but can't delete it
        "s3 CreateBucket",  # nor does it know directory buckets
        "s3 DeleteBucket",
    }
    for kind in KINDS.values():
        steps = (kind.create, *kind.then, *kind.update, *kind.delete)
        for call in (step for step in steps if isinstance(step, Call)):
            has = moto_has(kind.service, call.operation)
            excused = not call.moto and f"{kind.service} {call.operation}" in lacking
            assert excused or call.moto == has, f"{kind.token}: {call.operation}"


def moto_has(service: str, operation: str) -> bool:
    import importlib
    import inspect

    from botocore import xform_name

    module = importlib.import_module(f"moto.{service}.responses")
    classes = [found for _, found in inspect.getmembers(module, inspect.isclass)]
    return any(hasattr(found, xform_name(operation)) for found in classes)
