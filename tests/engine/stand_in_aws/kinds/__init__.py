"""The table of resources: one entry per type. What has none is refused."""

from . import (
    compute,
    ecr,
    eks,
    elasticache,
    fsx,
    iam,
    keys,
    load_balancer,
    network,
    rds,
    s3,
    sqs,
    watching,
)
from .base import Kind

KINDS: dict[str, Kind] = {
    kind.token: kind
    for part in (
        network.KINDS,
        compute.KINDS,
        eks.KINDS,
        iam.KINDS,
        keys.KINDS,
        rds.KINDS,
        elasticache.KINDS,
        fsx.KINDS,
        s3.KINDS,
        ecr.KINDS,
        sqs.KINDS,
        load_balancer.KINDS,
        watching.KINDS,
    )
    for kind in part
}
