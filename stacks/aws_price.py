"""What an environment in AWS costs a month, shown by each preview and kept as an output."""

import pulumi

from components.aws import database, redis
from components.aws.keys import Purpose
from planning.price import Bill, bill_of
from planning.price_table import as_output, as_text
from planning.wishes import plan_from

from .aws_settings import AwsFoundationSettings

_SECRETS = 2
"""The database's password, and those of Redis."""


def bill(environment: str, settings: AwsFoundationSettings) -> Bill:
    """Return what the settings cost, with the gateway's load balancer."""
    plan = plan_from(
        environment,
        settings.account.region,
        settings,
        database=_database(settings),
        redis=_redis(settings),
        keys=len(Purpose),
        secrets=_SECRETS,
        load_balancer="application",
    )
    return bill_of(plan)


def show(environment: str, settings: AwsFoundationSettings) -> None:
    """Print the bill, and export it as ``price``."""
    found = bill(environment, settings)
    pulumi.log.info(as_text(found))
    pulumi.export("price", as_output(found))


def _database(settings: AwsFoundationSettings) -> database.DatabaseSize:
    size = settings.database.size or settings.size
    return database.SIZES[size] if isinstance(size, str) else size


def _redis(settings: AwsFoundationSettings) -> redis.RedisSize:
    size = settings.redis.size or settings.size
    return redis.SIZES[size] if isinstance(size, str) else size
