"""Builds a Pulumi program without an engine and hands back everything that it registered.

``build(program)`` runs as in an update: outputs are known. ``build(program, preview=True)`` runs as
in the very first preview: nothing that a resource gives back is known. Assertions belong on what
was recorded, never inside ``apply``, where an unknown value would skip them.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pulumi
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime import mocks, rpc, settings
from pulumi.runtime import resource as registration
from pulumi.runtime._callbacks import _CallbackServicer
from pulumi.runtime.proto import resource_pb2, source_pb2

from tests import aws_outputs

STACK = "platform.test"
_STACK = "pulumi:pulumi:Stack"
_SECRET = rpc._special_secret_sig
_SIGNATURE = rpc._special_sig_key


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One resource as the engine would have been told of it."""

    type: str
    name: str
    urn: str
    parent: str
    custom: bool
    inputs: dict[str, Any]
    secret_paths: tuple[str, ...]
    depends_on: tuple[str, ...]
    deleted_with: str
    ignore_changes: tuple[str, ...]
    secret_outputs: tuple[str, ...]
    provider: str
    protect: bool
    timeouts: Mapping[str, str]

    @property
    def kind(self) -> str:
        return self.type.rpartition(":")[2]

    @property
    def is_object(self) -> bool:
        """Whether it is one object of Kubernetes, not a chart of many."""
        return self.type.startswith("kubernetes:") and self.kind != "Release"

    @property
    def is_aws(self) -> bool:
        return self.type.startswith("aws:")

    @property
    def object_name(self) -> str:
        return str(self.inputs.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.inputs.get("metadata", {}).get("namespace", ""))

    def has(self, path: str) -> bool:
        """Say whether there is an input at a path of plain names."""
        value: Any = self.inputs
        for part in path.split("."):
            assert part.isidentifier(), f"{path} would need quoting"
            if part not in value:
                return False
            value = value[part]
        return True


@dataclass(kw_only=True)
class Built:
    """What a program registered, exported, asked and returned."""

    resources: list[Recorded]
    registered_outputs: dict[str, dict[str, Any]]
    exports: dict[str, Any] = field(default_factory=dict)
    secret_exports: set[str] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    value: Any = None

    def all(self, kind: str) -> list[Recorded]:
        return [resource for resource in self.resources if resource.kind == kind]

    def one(self, kind: str, object_name: str | None = None) -> Recorded:
        found = [
            resource
            for resource in self.all(kind)
            if object_name is None or resource.object_name == object_name
        ]
        assert len(found) == 1, f"{len(found)} {kind} {object_name or ''}, not one"
        return found[0]

    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the spec of every pod template with the name of what holds it."""
        for resource in self.resources:
            template = resource.inputs.get("spec", {}).get("template") if resource.inputs else None
            if isinstance(template, dict) and "containers" in template.get("spec", {}):
                yield f"{resource.kind}/{resource.object_name}", template["spec"]

    @property
    def protected(self) -> set[str]:
        """The names of what Pulumi refuses to delete or replace."""
        return {resource.name for resource in self.resources if resource.protect}

    def by_urn(self) -> dict[str, Recorded]:
        return {resource.urn: resource for resource in self.resources}

    def before(self, resource: Recorded) -> list[Recorded]:
        """Return all that a resource waits for: directly, through others, or by its parents.

        They are made before it, and deleted after it.
        """
        urns, found = self.by_urn(), dict[str, Recorded]()
        waiting = [*resource.depends_on, resource.parent]
        while waiting:
            urn = waiting.pop()
            if urn in urns and urn not in found:
                found[urn] = urns[urn]
                waiting += [*urns[urn].depends_on, urns[urn].parent]
        return list(found.values())


class _Nothing(mocks.Mocks):
    """What is never asked, for the monitor answers by itself."""

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError("the monitor answers by itself")

    def new_resource(self, args: mocks.MockResourceArgs) -> Any:
        raise AssertionError("the monitor answers by itself")


class _Monitor(mocks.MockMonitor):
    def __init__(
        self,
        *,
        unknown: bool,
        foreign: Mapping[str, Mapping[str, Any]],
        secrets: set[str],
        answers: Mapping[str, Any],
    ) -> None:
        super().__init__(_Nothing())
        self.seen: list[Recorded] = []
        self.outputs: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self._unknown, self._foreign, self._secrets = unknown, foreign, secrets
        self._answers = answers

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """Return what the engine would call it: by the types of all that it is a part of."""
        above = parent.split("::")[2] if parent else _STACK
        kind = type_ if above == _STACK else f"{above}${type_}"
        stack, project = settings.get_stack(), settings.get_project()
        return f"urn:pulumi:{stack}::{project}::{kind}::{name}"

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        assert request.tok in self._answers, f"unexpected invoke {request.tok}"
        self.asked.append(json_format.MessageToDict(request.args))
        answer = struct_pb2.Struct()
        answer.update(self._answers[request.tok])
        return resource_pb2.ResourceInvokeResponse(**{"return": answer})

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        secret_paths: list[str] = []
        inputs = _plain(json_format.MessageToDict(request.object), "", secret_paths)
        self.seen.append(
            Recorded(
                type=request.type,
                name=request.name,
                urn=urn,
                parent=request.parent,
                custom=request.custom,
                inputs=inputs,
                secret_paths=tuple(secret_paths),
                depends_on=tuple(request.dependencies),
                deleted_with=request.deletedWith,
                ignore_changes=tuple(request.ignoreChanges),
                secret_outputs=tuple(request.additionalSecretOutputs),
                provider=request.provider,
                protect=request.protect,
                timeouts={
                    "create": request.customTimeouts.create,
                    "update": request.customTimeouts.update,
                    "delete": request.customTimeouts.delete,
                },
            )
        )
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, request.name, inputs)
        state = struct_pb2.Struct()
        if request.custom and not self._unknown:
            state.CopyFrom(request.object)
            _give_back(request.type, request.name, state)
            for name in request.additionalSecretOutputs:
                if name in state.fields:
                    _mark_secret(state, name)
        known = request.custom and not self._unknown
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=f"{request.name}-id" if known else "", object=state
        )

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        assert request.type == "pulumi:pulumi:StackReference", request.type
        stack = request.properties.fields["name"].string_value
        outputs = dict(self._foreign[stack])
        state = struct_pb2.Struct()
        state.update(
            {
                "name": stack,
                "outputs": outputs,
                "secretOutputNames": [name for name in outputs if name in self._secrets],
            }
        )
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        self.outputs[request.urn] = _plain(json_format.MessageToDict(request.outputs), "", [])
        return empty_pb2.Empty()


def _plain(value: Any, path: str, secret_paths: list[str]) -> Any:
    """Take the engine's wrappers off, and note where a secret was."""
    if isinstance(value, dict):
        if value.get(_SIGNATURE) == _SECRET:
            secret_paths.append(path)
            return _plain(value.get("value"), path, secret_paths)
        return {
            key: _plain(item, f"{path}.{key}" if path else key, secret_paths)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_plain(item, f"{path}[{index}]", secret_paths) for index, item in enumerate(value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _give_back(kind: str, name: str, state: struct_pb2.Struct) -> None:
    """Add what the cluster itself would add, or the cloud."""
    aws_outputs.give_back(kind, name, state)
    if kind == "kubernetes:core/v1:Service":
        state.fields["spec"].struct_value.update({"clusterIP": "10.96.0.99"})
    is_secret = kind == "kubernetes:core/v1:Secret" and "type" in state.fields
    if is_secret and "service-account-token" in state.fields["type"].string_value:
        state.update({"data": {"token": base64.b64encode(b"canary-token").decode()}})


def _mark_secret(state: struct_pb2.Struct, name: str) -> None:
    value = struct_pb2.Value()
    value.CopyFrom(state.fields[name])
    if value.struct_value.fields.get(_SIGNATURE):
        return
    wrapper = struct_pb2.Struct()
    wrapper.fields[_SIGNATURE].string_value = _SECRET
    wrapper.fields["value"].CopyFrom(value)
    state.fields[name].struct_value.CopyFrom(wrapper)


def build(
    program: Callable[[], Any],
    *,
    preview: bool = False,
    stack: str = STACK,
    foreign: Mapping[str, Mapping[str, Any]] | None = None,
    secrets: set[str] | None = None,
    answers: Mapping[str, Any] | None = None,
) -> Built:
    """Run ``program`` and return what it registered.

    Args:
        program: Declares resources; what it returns becomes ``value``.
        preview: Run as in a first preview, in which no resource gives anything back.
        stack: The running stack's name.
        foreign: The outputs of other stacks, by the stack's name.
        secrets: Which of those outputs are secret.
        answers: What look-ups are answered, by their token; any other is refused.
    """
    monitor = _Monitor(
        unknown=preview, foreign=foreign or {}, secrets=secrets or set(), answers=answers or {}
    )
    loop = asyncio.get_event_loop()
    built = Built(resources=monitor.seen, registered_outputs=monitor.outputs, asked=monitor.asked)
    settings.set_root_resource(None)
    pulumi.runtime.set_mocks(
        _Nothing(), project="llm-platform", stack=stack, preview=preview, monitor=monitor
    )

    @pulumi.runtime.test
    def run() -> None:
        built.value = program()

    try:
        # Where in the program each was made interests nobody here, and takes a quarter of the time.
        with patch.object(registration, "_get_stack_trace", source_pb2.StackTrace):
            run()
        root = settings.get_root_resource()
        for name, value in dict(getattr(root, "outputs", {})).items():
            output = pulumi.Output.from_input(value)
            if loop.run_until_complete(output.is_known()):
                built.exports[name] = loop.run_until_complete(output.future())
            if loop.run_until_complete(output.is_secret()):
                built.secret_exports.add(name)
    finally:
        settings.set_root_resource(None)
    return built


@contextmanager
def own_event_loop() -> Iterator[None]:
    """Give one test an event loop of its own, so that nothing it queued runs in the next one."""
    loop = asyncio.new_event_loop()
    # An output that fails is seen by whoever waits for it; its copies have nobody.
    loop.set_exception_handler(lambda _loop, _context: None)
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        # What answers the engine's hooks, where a program has some.
        loop.run_until_complete(_CallbackServicer.shutdown())
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        asyncio.set_event_loop(None)
