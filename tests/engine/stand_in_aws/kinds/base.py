"""The words of the table: a kind of resource, the calls that make it, what a change does to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import Fitted, fit, knows
from ..moto import Cloud
from ..store import Store
from ..values import filled

Facts = dict[str, Any]
"""A resource's inputs, and beside them: `id`, `region`, `account`, `made` (the answer to its
create), `seen` (the answer to its read), `own` (what a step kept), `fake` (17 hex digits of its
own), `tagsAll`, and `old` (these facts before a change, empty in a create)."""


@dataclass(frozen=True)
class Call:
    """One call of a service.

    Args:
        operation: Its name in boto3's model: `CreateVpc`.
        named: Parameters by template: `{"VpcId": "{id}"}`.
        rename: Parameter by property path, where the names differ; None for what isn't sent.
        only: The properties that it takes, always sent together. Empty: all that its model knows,
            and in an update those of them that changed.
        more: Further parameters, for what no rule can say.
        takes: Properties that `more` sends.
        inside: A structure among the parameters that takes what isn't found at the top.
        whole: In an update, send all that the model knows, not only what changed.
        moto: False where moto has no such call: then its parameters are only checked.
    """

    operation: str
    named: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str | None] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    more: Callable[[Facts], dict[str, Any]] | None = None
    takes: tuple[str, ...] = ()
    inside: str = ""
    whole: bool = False
    moto: bool = True

    def built(self, shape: Any, facts: Facts, properties: Mapping[str, Any]) -> Fitted:
        """Return its parameters, made of these properties and facts."""
        chosen = {n: v for n, v in properties.items() if not self.only or n in self.only}
        chosen = {n: v for n, v in chosen.items() if n not in self.takes}
        fitted = fit(shape, chosen, self.rename, self.inside)
        fitted.used.update(set(self.takes) & set(properties))
        for name, template in self.named.items():
            fitted.params[name] = filled(template, facts)
        if self.more:
            merge(fitted.params, self.more(facts))
        return fitted

    def handles(self, shape: Any, name: str) -> bool:
        """Say whether it sends a property."""
        if name in self.takes:
            return True
        if self.only and name not in self.only:
            return False
        return knows(shape, name, self.rename, self.inside)


def merge(params: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put parameters into others, structure into structure."""
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(params.get(name), dict):
            merge(params[name], value)
        else:
            params[name] = value


@dataclass(frozen=True)
class Context:
    """What a step and a rule may use."""

    cloud: Cloud
    store: Store
    facts: Facts

    def changed(self, *names: str) -> bool:
        """Say whether one of these inputs is another than before; in a create, whether it's set."""
        old = self.facts["old"]
        return any(self.facts.get(name) != old.get(name) for name in names)


@dataclass(frozen=True)
class Act:
    """A step that no single call can say; what it returns is kept as `own`."""

    do: Callable[[Context], Mapping[str, Any] | None]
    takes: tuple[str, ...] = ()
    always: bool = False
    """Do it at every create and update, not only when one of `takes` is set or changed."""


Step = Call | Act


@dataclass(frozen=True)
class Read:
    """How to look a thing up."""

    operation: str
    named: Mapping[str, Any]
    path: str
    """Where it lies in the answer, as JMESPath; `{id}` and the like are filled in."""
    gone: str = ""
    """A JMESPath over what was found that says it is as good as deleted."""


@dataclass(frozen=True)
class Named:
    """A physical name: which property, how long, of which characters."""

    property: str
    limit: int
    pattern: str = ""
    prefix: str = ""
    lower: bool = False
    given: bool = False
    """The provider makes none up: it must be given."""


@dataclass(frozen=True)
class Tagging:
    """How a service tags what is there already."""

    tag: str
    untag: str
    named: Mapping[str, str]
    """The parameters that say which thing, by template."""
    tags: str = "Tags"
    keys: str = "TagKeys"


BY_ITS_STEPS = Tagging("", "", {})
"""The tags of these are put by the steps of their create and update."""


Refusals = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Kind:
    """One type of resource.

    Args:
        token: Its type: `aws:ec2/vpc:Vpc`.
        service: The service in boto3's models.
        create: What makes it; None where there is nothing to make.
        id: Template of its id.
        then: Further steps of a create, taken again in an update when what they take changed.
        update: Steps of an update only.
        read: How to look it up; None when the store knows.
        delete: What unmakes it, in order.
        replaces: Properties, or paths below them, whose change makes a new one. As in
            hashicorp/terraform-provider-aws (`ForceNew`), which the real provider is made of.
        forces: Names further properties, given old and new inputs, whose change makes a new one.
        local: Properties that the provider itself acts on.
        named: Its physical name.
        defaults: What the provider gives where nothing is said.
        tagging: How it is tagged later; None: as its service does.
        tag_spec: EC2's name of the type in `TagSpecifications`.
        gives: Output templates, or functions of the facts; besides what its read tells.
        hides: Outputs that moto makes up.
        recomputed: Outputs that any update changes.
        drifts: Inputs whose outside change a refresh sees.
        checks: What the service refuses of the inputs alone, before anything is asked.
        rules: What the service refuses given what is there, at create and update.
        keeps: Types that, when one of them mentions this one's id (or has it in the property
            after `#`), keep it from being deleted.
    """

    token: str
    service: str
    create: Call | None
    id: str
    then: tuple[Step, ...] = ()
    update: tuple[Step, ...] = ()
    read: Read | None = None
    delete: tuple[Step, ...] = ()
    replaces: tuple[str, ...] = ()
    forces: Callable[[Mapping[str, Any], Mapping[str, Any]], Iterable[str]] | None = None
    local: tuple[str, ...] = ()
    named: Named | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tagging: Tagging | None = None
    tag_spec: str = ""
    gives: Mapping[str, str | Callable[[Context], Any]] = field(default_factory=dict)
    hides: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    drifts: tuple[str, ...] = ()
    checks: Callable[[Facts], Refusals] | None = None
    rules: Callable[[Context], None] | None = None
    keeps: tuple[str, ...] = ()


def each(operation: str, named: Mapping[str, Any], *properties: str) -> tuple[Call, ...]:
    """Return one call per property, for services that change one attribute at a time."""
    return tuple(Call(operation, named, only=(name,)) for name in properties)


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that say nothing."""
    return {name: value for name, value in params.items() if value is not None}


def added(facts: Facts, name: str) -> list[Any]:
    """Return what a list has now and hadn't before."""
    return [x for x in facts.get(name) or [] if x not in (facts["old"].get(name) or [])]


def removed(facts: Facts, name: str) -> list[Any]:
    """Return what a list had before and hasn't now."""
    return [x for x in facts["old"].get(name) or [] if x not in (facts.get(name) or [])]
