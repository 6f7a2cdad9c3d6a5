"""The table of resources: one entry per type. What has none is refused.

To add a type: write a `Kind` in its service's file (base.py tells what each word means), list it
in that file's `KINDS`, and give it a sample in tests/engine/test_stand_in_aws_kinds.py. Properties
find their parameters by boto3's model of the call; the entry says where names differ (`rename`),
which calls follow the create (`then`) and which change it (`update`), what makes a new one
(`replaces`, as the real provider's source has it), and what only the provider acts on (`local`). A
call that moto lacks gets `moto=False`: its parameters are checked, and the thing is kept in the
store. A property that no call sends is refused in the preview, a change of one that nothing handles
in the diff.
"""

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
