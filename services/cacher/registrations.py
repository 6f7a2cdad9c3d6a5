"""Reading registrations, and deciding which of them hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from components.domain import labels
from components.domain.registration import Registration
from services.core.kube import Object

from .errors import ForeignQueue, Invalid, NameTaken, Unfit

CONDITION = f"{labels.PREFIX}/condition"
"""Annotation on a ConfigMap: why its registration isn't in force."""


@dataclass(frozen=True)
class Claim:
    """A valid registration, and where it stands."""

    team: str
    namespace: str
    config_map: str
    created: str
    registration: Registration

    @property
    def age_order(self) -> tuple[str, str, str]:
        """The older claim comes first; among equals any fixed order does."""
        return self.created, self.namespace, self.config_map


@dataclass(frozen=True)
class Owner:
    """Whom a name belongs to, by the records."""

    namespace: str
    released: bool = False
    """Whether the name has been unclaimed for so long that others may have it."""


@dataclass(frozen=True)
class Verdict:
    """Which claims hold, and what is wrong with the other objects."""

    holding: dict[str, Claim]
    kept: dict[str, str]
    """Names whose registration can't be read now, with their namespace: the last record stays."""
    problems: dict[tuple[str, str], Unfit]


def teams_of(namespaces: Iterable[Object]) -> dict[str, str]:
    """Return the team of each namespace that has one."""
    teams: dict[str, str] = {}
    for item in namespaces:
        team = (item["metadata"].get("labels") or {}).get(labels.TEAM)
        if team:
            teams[item["metadata"]["name"]] = team
    return teams


def judge(
    config_maps: Iterable[Object],
    teams: Mapping[str, str],
    owners: Mapping[str, Owner],
    queue_prefix: str = "",
) -> Verdict:
    """Decide over all registrations.

    Args:
        config_maps: the labelled ConfigMaps of the whole cluster; those outside of team
            namespaces are nobody's, and left alone.
        teams: the team of each team namespace.
        owners: whom each name belongs to now. Its namespace keeps it while anything there claims
            it, even what can't be read, and for a while after that.
        queue_prefix: what the platform's own queues begin with, before the team's name.
    """
    problems: dict[tuple[str, str], Unfit] = {}
    claims: dict[str, list[Claim]] = {}
    labelled: set[tuple[str, str]] = set()
    for item in config_maps:
        namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
        if namespace not in teams:
            continue
        labelled.add((namespace, item["metadata"]["labels"].get(labels.ENDPOINT, "")))
        try:
            claim = claim_of(item, teams[namespace], queue_prefix)
        except Unfit as problem:
            problems[namespace, name] = problem
        else:
            claims.setdefault(claim.registration.name, []).append(claim)
    holding: dict[str, Claim] = {}
    for name, rivals in claims.items():
        owner = owners.get(name)
        home = owner.namespace if owner else ""
        rest = sorted(rivals, key=lambda c: (c.namespace != home, *c.age_order))
        held = owner is not None and ((home, name) in labelled or not owner.released)
        if not held or rest[0].namespace == home:
            holding[name] = rest.pop(0)
        for rival in rest:
            problems[rival.namespace, rival.config_map] = _taken(rival, holding.get(name))
    kept = {
        name: owner.namespace
        for name, owner in owners.items()
        if name not in holding and (owner.namespace, name) in labelled
    }
    return Verdict(holding, kept, problems)


def _taken(rival: Claim, holder: Claim | None) -> NameTaken:
    # Whose it is stays untold across namespaces: tenants don't learn of each other.
    ours = holder is not None and holder.namespace == rival.namespace
    where = holder.config_map if holder is not None and ours else "another namespace"
    name = rival.registration.name
    return NameTaken(f"the name {name!r} is already registered by {where}; choose another name")


def claim_of(item: Object, team: str, queue_prefix: str) -> Claim:
    """Read one labelled ConfigMap of a team's namespace.

    Raises:
        Unfit: it can't be used; the message says why.
    """
    metadata = item["metadata"]
    try:
        registration = Registration.from_data(item.get("data") or {})
    except KeyError as error:
        raise Invalid(f"the ConfigMap has no key {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "registration"
        raise Invalid(f"{field}: {first['msg']}") from error
    _check_queue(registration.queue, team, queue_prefix)
    return Claim(
        team=team,
        namespace=metadata["namespace"],
        config_map=metadata["name"],
        created=metadata.get("creationTimestamp") or "",
        registration=registration,
    )


def _check_queue(queue: str, team: str, prefix: str) -> None:
    """Refuse a queue of somebody else's: the gateway would send tasks wherever it is told."""
    if not queue:
        return
    if not prefix:
        raise ForeignQueue("queue: this platform's queues follow from names; leave it out")
    if not queue.startswith(f"{prefix}{team}_"):
        raise ForeignQueue(
            f"queue: {queue!r} isn't one of the team's on this platform, which begin with "
            f"'{prefix}{team}_'"
        )
