"""Making the broker that the settings name."""

from .base import Broker
from .settings import RedisSettings, ServiceBusSettings, SqsSettings


def make_broker(settings: RedisSettings | SqsSettings | ServiceBusSettings) -> Broker:
    """Return a broker; it connects at the first use.

    Only the libraries of the one kind are loaded.
    """
    match settings:
        case RedisSettings():
            from .redis import RedisBroker  # noqa: PLC0415

            return RedisBroker(settings.url.get_secret_value())
        case SqsSettings():
            from .sqs import SqsBroker  # noqa: PLC0415

            return SqsBroker(settings.region, settings.endpoint_url)
        case ServiceBusSettings():
            from .servicebus import ServiceBusBroker  # noqa: PLC0415

            return ServiceBusBroker(settings.url.get_secret_value())
