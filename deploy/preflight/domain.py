"""The gateway's domain: its zone, for its address and the proof that a certificate needs."""

from collections.abc import Iterator

from .aws import Aws
from .plan import PreflightPlan
from .report import Row, cant_tell, ok, would_fail


def check(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Look for the zone that the domain belongs to."""
    domain = plan.gateway_domain
    if domain is None:
        return
    title = f"domain {domain}"
    zones = [
        (str(zone["Name"]).rstrip("."), zone)
        for page in aws.pages("route53", "list_hosted_zones")
        for zone in page["HostedZones"]
    ]
    covering = [(name, zone) for name, zone in zones if f".{domain}".endswith(f".{name}")]
    if not covering:
        yield would_fail(
            title,
            "no hosted zone of this account covers it",
            f"make one and delegate to it: aws route53 create-hosted-zone --name "
            f"{domain.partition('.')[2] or domain} --caller-reference preflight",
        )
        return
    public = [(n, z) for n, z in covering if not z.get("Config", {}).get("PrivateZone")]
    if not public:
        yield cant_tell(
            title,
            f"only the private zone {covering[0][0]} covers it",
            "a certificate's proof must be seen from outside: it needs a public zone too",
        )
        return
    name, zone = max(public, key=lambda pair: len(pair[0]))
    yield ok(title, f"in zone {name} ({zone['Id'].rpartition('/')[2]})")
