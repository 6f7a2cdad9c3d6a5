"""Label and annotation keys: written once here, so that what sets one and what reads one agree."""

PREFIX = "llm-platform"

TEAM = f"{PREFIX}/team"
"""On a namespace: the team that owns it and everything in it."""

ENDPOINT = f"{PREFIX}/endpoint"
"""On pods, Services and thereby EndpointSlices: the endpoint's name."""

REGISTRATION = f"{PREFIX}/registration"
"""On a ConfigMap (value ``"1"``, the schema's version): an endpoint declares itself with it."""

CONFIG_HASH = f"{PREFIX}/config-hash"
"""Annotation on pod templates: a new value rolls the pods when their configuration changed."""

MANAGED_BY = "app.kubernetes.io/managed-by"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
PART_OF = "app.kubernetes.io/part-of"


def common(component: str, name: str) -> dict[str, str]:
    """Labels that every object of the platform carries; never used as selectors."""
    return {MANAGED_BY: "pulumi", PART_OF: PREFIX, COMPONENT: component, NAME: name}
