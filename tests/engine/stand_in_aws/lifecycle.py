"""What the provider does with a resource, as the engine asks for it; free of the protocol."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import checks, model, sdk
from .kinds import KINDS
from .kinds.base import Act, Call, Context, Facts, Kind, Step, merge
from .kinds.tagging import retag, tag_parameters
from .moto import Cloud, CloudError
from .store import Record, Store
from .values import UNKNOWN, Properties, differences, filled, plain_path, same, simplified, unknown

DEFAULTS = "__defaults"


class HalfMadeError(Exception):
    """It is there, but a step after its creation failed: the engine keeps it and comes again."""

    def __init__(self, object_id: str, state: Properties, reason: str) -> None:
        super().__init__(reason)
        self.id = object_id
        self.state = state


@dataclass
class Settings:
    """What the provider was configured with."""

    region: str = ""
    default_tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Was:
    """A resource as the engine knows it."""

    urn: str
    id: str
    inputs: Properties
    state: Properties


@dataclass(frozen=True)
class Change:
    """What differs between two versions of a resource."""

    changed: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_first: bool = False


@dataclass(frozen=True)
class Naming:
    """What the engine tells for a name that nobody gave."""

    name: str
    seed: bytes
    proposed: str = ""
    disabled: bool = False


def kind_of(token: str) -> Kind:
    """Return a type's entry in the table, or say that there is none."""
    if token not in KINDS:
        raise CloudError(
            "StandIn", f"the stand-in has no entry for {token}; add one to stand_in_aws/kinds"
        )
    return KINDS[token]


class Lifecycle:
    """Everything that happens to resources."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._clouds: dict[str, Cloud] = {}

    def cloud(self, region: str = "") -> Cloud:
        """Return a region, by default the provider's."""
        wanted = region or self._settings.region
        if unknown(wanted):
            wanted = self._settings.region
        return self._clouds.setdefault(wanted, Cloud(wanted))

    # Check

    def check(
        self, token: str, olds: Properties, news: Properties, naming: Naming
    ) -> tuple[Properties, list[checks.Refusal]]:
        """Return the inputs with what the provider adds, and what is refused of them."""
        kind = kind_of(token)
        described = sdk.resource(token)
        if described is None:
            return news, [("", f"the SDK has no type {token}")]
        inputs = {name: value for name, value in news.items() if name != DEFAULTS}
        refused = list(checks.by_sdk(described["inputs"], inputs))
        if refused:
            return news, refused
        _write_policies(described["inputs"]["fields"], inputs)
        refused += self._complete(kind, inputs, olds, naming)
        tags = self._tags(inputs)
        cloud = self.cloud(inputs.get("region", ""))
        facts = checks.facts_before(_without_marks(inputs), cloud, tags)
        refused += checks.by_name(kind, inputs)
        refused += checks.by_tags(tags)
        refused += checks.by_models(kind, facts, self._sent(kind, inputs), cloud)
        if kind.checks:
            refused += kind.checks(facts)
        return inputs, refused

    def _complete(
        self, kind: Kind, inputs: Properties, olds: Properties, naming: Naming
    ) -> list[checks.Refusal]:
        """Add defaults and the physical name; return what keeps a name from being made."""
        made: list[str] = []
        for name, value in kind.defaults.items():
            if inputs.get(name) is None:
                inputs[name] = value
                made.append(name)
        named = kind.named
        if named and not named.given and inputs.get(named.property) is None:
            prefix = inputs.get(f"{named.property}Prefix")
            if named.property in olds.get(DEFAULTS, ()):
                inputs[named.property] = olds[named.property]
            elif prefix:
                inputs[named.property] = (
                    UNKNOWN if unknown(prefix) else prefix + _digits(naming, 26)
                )
            elif naming.disabled:
                return [(named.property, "is required: automatic naming is off")]
            else:
                name = naming.proposed or f"{naming.name}-{_digits(naming, 7)}"
                inputs[named.property] = named.prefix + (name.lower() if named.lower else name)
            made.append(named.property)
        if made:
            inputs[DEFAULTS] = sorted(made)
        return []

    def _tags(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        tags = inputs.get("tags") or {}
        return {**self._settings.default_tags, **tags} if not unknown(tags) else {}

    @staticmethod
    def _sent(kind: Kind, inputs: Mapping[str, Any]) -> Properties:
        """Return the properties that calls may send: neither tags nor what is local."""
        sent = {
            name: value
            for name, value in _without_marks(inputs).items()
            if name not in kind.local and name != "region"
        }
        sent.pop("tags", None)
        return sent

    # Diff

    def diff(self, token: str, was: Was, news: Properties) -> Change:
        """Say what changed, and whether the change makes a new one."""
        kind = kind_of(token)
        old, new = _without_marks(was.inputs), _without_marks(news)
        changed = [path for path in differences(old, new) if _root(path) != "tags"]
        if _tagged(token) and not same(was.state.get("tagsAll") or {}, self._tags(news)):
            changed.append("tags")
        forced = set(kind.forces(old, new)) if kind.forces else set()
        replaces = [path for path in changed if _forces(kind, path) or _root(path) in forced]
        self._require_known(kind, [path for path in changed if path not in replaces])
        name = kind.named.property if kind.named else ""
        kept_name = name in new and name not in news.get(DEFAULTS, ()) and name not in replaces
        return Change(tuple(changed), tuple(replaces), bool(replaces) and kept_name)

    def _require_known(self, kind: Kind, paths: list[str]) -> None:
        """Refuse a change that the table says nothing of, rather than guess what it does."""
        for name in {_root(path) for path in paths}:
            if name in {"tags", *kind.local}:
                continue
            if not any(self._handles(kind, step, name) for step in (*kind.then, *kind.update)):
                raise CloudError(
                    "StandIn",
                    f"the stand-in doesn't know what a change of {name!r} does: say it in its "
                    f"entry for {kind.token} (replaces, update, then or local)",
                )

    def _handles(self, kind: Kind, step: Step, name: str) -> bool:
        if isinstance(step, Act):
            return name in step.takes
        return step.handles(self.cloud().input(kind.service, step.operation), name)

    # Create

    def preview_create(self, token: str, inputs: Properties) -> Properties:
        """Return what is known before it is there: its inputs and tags."""
        state = _without_marks(inputs)
        if _tagged(token):
            state["tagsAll"] = self._tags(inputs)
        return state

    def create(self, urn: str, token: str, inputs: Properties) -> tuple[str, Properties]:
        """Make it."""
        kind = kind_of(token)
        if self._store.take_fault("before", token):
            raise CloudError("ThrottlingException", "Rate exceeded", f"create {token}")
        context = self._context(kind, urn, inputs)
        facts = context.facts
        self._obey(context, kind)
        if kind.create:
            facts["made"] = self._send(kind, kind.create, context, inputs)
        object_id = str(filled(kind.id, facts))
        facts["id"] = object_id
        if self._store.take_fault("dies", token):
            os._exit(1)  # as killed: the cloud has it, nobody was told
        self._refuse_a_second(kind, object_id)
        self._keep(kind, urn, facts, inputs)
        self._store.note("create", token, object_id)
        try:
            if self._store.take_fault("half", token):
                raise CloudError("RequestLimitExceeded", "Rate exceeded", "after the create")
            self._take_steps(kind, kind.then, context, inputs)
        except CloudError as error:
            raise HalfMadeError(
                object_id, self._state(kind, context, inputs), str(error)
            ) from error
        self._keep(kind, urn, facts, inputs)
        return object_id, self._state(kind, context, inputs)

    def _refuse_a_second(self, kind: Kind, object_id: str) -> None:
        """Refuse what moto wouldn't: another one of the same id, where no call made it in moto."""
        if kind.create and not kind.create.moto and self._store.get(kind.token, object_id):
            raise CloudError("AlreadyExists", f"{object_id} already exists", kind.create.operation)

    def _context(
        self, kind: Kind, urn: str, inputs: Mapping[str, Any], old: Facts | None = None
    ) -> Context:
        cloud = self.cloud(inputs.get("region", ""))
        facts = checks.facts_before(_without_marks(inputs), cloud, self._tags(inputs))
        name = json.dumps([urn, _without_marks(inputs)], sort_keys=True)
        facts["fake"] = hashlib.sha256(name.encode()).hexdigest()[:17]
        facts["own"] = {"fake": facts["fake"]}
        facts["old"] = old or {}
        return Context(cloud, self._store, facts)

    def _obey(self, context: Context, kind: Kind) -> None:
        if kind.rules:
            kind.rules(context)

    def _send(
        self, kind: Kind, call: Call, context: Context, properties: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make a call, or only check it where moto hasn't got it."""
        shape = context.cloud.input(kind.service, call.operation)
        params = call.built(shape, context.facts, self._sent(kind, properties)).params
        if call is kind.create and _tagged(kind.token):
            merge(params, tag_parameters(kind, shape, context.facts))
        if call.moto:
            return context.cloud.call(kind.service, call.operation, params)
        refused = [f"{path} {reason}" for path, reason in model.refusals(shape, params)]
        if refused:
            raise CloudError("ValidationException", "; ".join(refused), call.operation)
        return {}

    def _take_steps(
        self, kind: Kind, steps: tuple[Step, ...], context: Context, inputs: Mapping[str, Any]
    ) -> None:
        """Take those steps that have something to do; what a create took already, only once."""
        facts = context.facts
        for at, step in enumerate(steps):
            if not facts["old"] and at < facts["own"].get("taken", 0):
                continue
            self._take(kind, step, context, inputs)
            if not facts["old"]:
                facts["own"] = {**facts["own"], "taken": at + 1}

    def _take(self, kind: Kind, step: Step, context: Context, inputs: Mapping[str, Any]) -> None:
        facts = context.facts
        if isinstance(step, Act):
            if step.always or context.changed(*step.takes):
                facts["own"] = {**facts["own"], **(step.do(context) or {})}
            return
        shape = context.cloud.input(kind.service, step.operation)
        said = {n for n in self._sent(kind, inputs) if step.handles(shape, n)}
        before = {n for n in facts["old"].get("names", ()) if step.handles(shape, n)}
        touched = {name for name in said | before if context.changed(name)}
        whole = bool(step.only or step.takes or step.whole)
        chosen = said if whole else said & touched
        if touched and chosen:
            self._send(kind, step, context, {name: inputs[name] for name in chosen})

    # What the engine keeps

    def _keep(self, kind: Kind, urn: str, facts: Facts, inputs: Mapping[str, Any]) -> None:
        record: Record = {"urn": urn, "own": facts["own"], "inputs": _without_marks(inputs)}
        self._store.put(kind.token, facts["id"], record)

    def _state(self, kind: Kind, context: Context, inputs: Mapping[str, Any]) -> Properties:
        """Return a resource's outputs: its inputs, what its read tells, what its entry gives."""
        facts = context.facts
        facts["seen"] = self._look(kind, context) or {}
        described = sdk.resource(kind.token) or {"outputs": {"fields": {}}}
        fields = described["outputs"]["fields"]
        told = model.matching(fields, facts["seen"])
        state = {name: value for name, value in told.items() if name not in kind.hides}
        state |= _without_marks(inputs)
        state["region"] = facts["region"]
        for name, given in kind.gives.items():
            value = given(context) if callable(given) else filled(given, facts)
            if value is not None:
                state[name] = value
        if "tagsAll" in fields:
            state["tags"] = dict(inputs.get("tags") or {})
            state["tagsAll"] = facts["tagsAll"]
        return {name: value for name, value in simplified(state).items() if name in fields}

    def _look(self, kind: Kind, context: Context) -> Any:
        """Return what the cloud says of it; None when it isn't there."""
        if kind.read is None:
            record = self._store.get(kind.token, context.facts["id"])
            return {} if record is not None else None
        named = filled(kind.read.named, context.facts)
        path = str(filled(kind.read.path, context.facts))
        seen = context.cloud.find(kind.service, kind.read.operation, path, **named)
        if seen is not None and kind.read.gone:
            import jmespath

            return None if jmespath.search(kind.read.gone, seen) else seen
        return seen

    # Read, update, delete

    def read(self, token: str, was: Was) -> tuple[Properties, Properties] | None:
        """Return its inputs and outputs as they are in the cloud, or None when it's gone."""
        kind = kind_of(token)
        record = self._store.get(token, was.id) or {}
        known = _without_marks(was.inputs or record.get("inputs") or was.state)
        context = self._existing(kind, was, known)
        seen = self._look(kind, context)
        if seen is None:
            return None
        if not was.inputs:
            return known, self._state(kind, context, known)
        described = (sdk.resource(token) or {})["inputs"]["fields"]
        now = dict(was.inputs)
        for path in kind.drifts:
            _follow(now, path, model.matching(described, seen))
        return now, {**was.state, **self._state(kind, context, now)}

    def _existing(
        self, kind: Kind, was: Was, inputs: Mapping[str, Any], old: Facts | None = None
    ) -> Context:
        context = self._context(kind, was.urn, inputs, old)
        own = (self._store.get(kind.token, was.id) or {}).get("own", {})
        fake = own.get("fake", context.facts["fake"])
        context.facts.update({"id": was.id, "own": own, "outputs": dict(was.state), "fake": fake})
        return context

    def preview_update(self, token: str, was: Was, news: Properties) -> Properties:
        """Return what an update would leave, as far as it is known."""
        after = {**was.state, **self.preview_create(token, news)}
        for name in set(_without_marks(was.inputs)) - set(news):
            after.pop(name, None)
        return after | dict.fromkeys(kind_of(token).recomputed, UNKNOWN)

    def update(self, token: str, was: Was, news: Properties) -> Properties:
        """Change it in place; when nothing differs, finish what was left half made."""
        kind = kind_of(token)
        before, tags_before = _without_marks(was.inputs), was.state.get("tagsAll") or {}
        same_inputs = not list(differences(before, _without_marks(news)))
        finish = same_inputs and same(tags_before, self._tags(news))
        old = None if finish else {**before, "names": list(before), "tagsAll": tags_before}
        context = self._existing(kind, was, news, old)
        self._obey(context, kind)
        try:
            self._take_steps(
                kind, kind.then if finish else (*kind.then, *kind.update), context, news
            )
            self._retag(kind, context, tags_before)
        except CloudError as error:
            raise HalfMadeError(was.id, was.state, str(error)) from error
        self._keep(kind, was.urn, context.facts, news)
        self._store.note("update", token, was.id)
        return self._state(kind, context, news)

    def _retag(self, kind: Kind, context: Context, before: Mapping[str, Any]) -> None:
        after = context.facts["tagsAll"]
        if _tagged(kind.token) and before != after:
            retag(kind, context, dict(before), after)

    def delete(self, token: str, was: Was) -> None:
        """Unmake it, as far as what is there allows."""
        kind = kind_of(token)
        inputs = was.inputs or (self._store.get(token, was.id) or {}).get("inputs") or was.state
        context = self._existing(kind, was, inputs)
        if self._look(kind, context) is not None:
            self._refuse_while_used(kind, was.id, context)
            for step in kind.delete:
                if isinstance(step, Act):
                    step.do(context)
                    continue
                try:
                    self._send(kind, step, context, {})
                except CloudError as error:
                    if not error.missing:
                        raise
        self._store.drop(token, was.id)
        self._store.note("delete", token, was.id)

    def _refuse_while_used(self, kind: Kind, object_id: str, context: Context) -> None:
        keeps = dict(entry.partition("#")[::2] for entry in kind.keeps)
        for other in self._store.objects(*keeps) if keeps else ():
            where = keeps[other["type"]]
            said = other["inputs"].get(where) if where else other["inputs"]
            if _mentions(said, object_id):
                raise CloudError(
                    "DependencyViolation",
                    f"resource {object_id} has a dependent object: {other['type']} {other['id']}",
                    f"delete {kind.token}",
                )


def _without_marks(inputs: Mapping[str, Any]) -> Properties:
    return {name: value for name, value in inputs.items() if name != DEFAULTS}


def _tagged(token: str) -> bool:
    described = sdk.resource(token)
    return described is not None and "tagsAll" in described["outputs"]["fields"]


def _forces(kind: Kind, path: str) -> bool:
    """Say whether a change at a path makes a new one: the path, or one above or below, is named."""
    plain = plain_path(path)
    return any(
        plain == named or plain.startswith(f"{named}.") or named.startswith(f"{plain}.")
        for named in kind.replaces
    )


def _root(path: str) -> str:
    """Return the property that a path begins with."""
    return plain_path(path).partition(".")[0]


def _digits(naming: Naming, number: int) -> str:
    """Return digits of the engine's own seed, so that a name is another in each resource's life."""
    return hashlib.sha256(naming.seed + naming.name.encode()).hexdigest()[:number]


def _mentions(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_mentions(inside, text) for inside in value.values())
    if isinstance(value, list):
        return any(_mentions(inside, text) for inside in value)
    return value == text


def _write_policies(fields: Mapping[str, Any], inputs: Properties) -> None:
    """Make a text of each policy that was given as an object, as the provider does."""
    for name, value in inputs.items():
        if fields.get(name, {}).get("is") == "json" and isinstance(value, Mapping):
            inputs[name] = json.dumps(value)


def _follow(inputs: Properties, path: str, seen: Mapping[str, Any]) -> None:
    """Put what the cloud has into the inputs, where they say something at that path."""
    *above, last = path.split(".")
    place: Any = inputs
    for name in above:
        place[name] = dict(place.get(name) or {})
        place, seen = place[name], seen.get(name) or {}
    if last in place and seen.get(last) is not None:
        place[last] = seen[last]
