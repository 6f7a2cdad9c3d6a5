"""The executable that the engine starts: the provider's protocol over `Lifecycle`."""
# ruff: noqa: N802 - the methods have the protocol's names

import json
import os
import sys
import time
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from . import checks, sdk
from .lifecycle import HalfMadeError, Lifecycle, Naming, Settings, Was
from .moto import ACCOUNT, CloudError
from .store import Store
from .values import Properties, simplified, unknown

VERSION = "7.51.1"


def told(struct: struct_pb2.Struct) -> Properties:
    """Return properties as plain values."""
    return simplified(json_format.MessageToDict(struct))


def said(properties: Properties) -> struct_pb2.Struct:
    """Return plain values as the protocol's."""
    return json_format.ParseDict(properties, struct_pb2.Struct())


def type_of(urn: str) -> str:
    """Return the type in a URN, without those of its parents."""
    return urn.split("::")[2].rpartition("$")[2]


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._settings = Settings()
        self._lifecycle = Lifecycle(store, self._settings)

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(supports_autonaming_configuration=True)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def CheckConfig(self, request: Any, context: Any) -> Any:
        described = sdk.resource(sdk.PROVIDER) or {}
        config = _unfolded(told(request.news))
        config.pop("version", None)
        found = checks.by_sdk(described["inputs"], config)
        failures = [provider_pb2.CheckFailure(property=p, reason=r) for p, r in found]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        old, new = told(request.old_inputs), told(request.news)
        changed = [name for name in {*old, *new} if old.get(name) != new.get(name)]
        moved = [name for name in changed if name == "region"]
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some if changed else none, diffs=changed, replaces=moved
        )

    def Configure(self, request: Any, context: Any) -> Any:
        config = _unfolded(told(request.args))
        region = config.get("region") or os.environ.get("AWS_REGION", "")
        if not region:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "missing required configuration: region"
            )
        allowed = config.get("allowedAccountIds")
        if allowed and not unknown(allowed) and ACCOUNT not in allowed:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"AWS account ID not allowed: {ACCOUNT}"
            )
        self._settings.region = region
        tags = (config.get("defaultTags") or {}).get("tags") or {}
        self._settings.default_tags = {key: str(value) for key, value in tags.items()}
        return provider_pb2.ConfigureResponse(
            supportsPreview=True, supports_autonaming_configuration=True
        )

    def Check(self, request: Any, context: Any) -> Any:
        naming = Naming(
            name=request.name or request.urn.rpartition("::")[2],
            seed=request.randomSeed,
            proposed=request.autonaming.proposed_name,
            disabled=request.autonaming.mode == provider_pb2.CheckRequest.AutonamingOptions.DISABLE,
        )
        try:
            inputs, refused = self._lifecycle.check(
                type_of(request.urn), told(request.olds), told(request.news), naming
            )
        except CloudError as error:
            inputs, refused = {}, [("", str(error))]
        failures = [provider_pb2.CheckFailure(property=p, reason=r) for p, r in refused]
        return provider_pb2.CheckResponse(inputs=said(inputs), failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:
        kinds, one = provider_pb2.DiffResponse, provider_pb2.PropertyDiff
        with _told_to_engine(context):
            was = Was(request.urn, request.id, told(request.old_inputs), told(request.olds))
            change = self._lifecycle.diff(type_of(request.urn), was, told(request.news))
            detailed = {
                path: one(
                    kind=one.UPDATE_REPLACE if path in change.replaces else one.UPDATE,
                    inputDiff=True,
                )
                for path in change.changed
            }
            return kinds(
                changes=kinds.DIFF_SOME if change.changed else kinds.DIFF_NONE,
                diffs=sorted({path.partition(".")[0].partition("[")[0] for path in change.changed}),
                replaces=change.replaces,
                deleteBeforeReplace=change.delete_first,
                detailedDiff=detailed,
                hasDetailedDiff=True,
            )

    def Create(self, request: Any, context: Any) -> Any:
        token, inputs = type_of(request.urn), told(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(
                properties=said(self._lifecycle.preview_create(token, inputs))
            )
        with _told_to_engine(context, inputs):
            object_id, state = self._lifecycle.create(request.urn, token, inputs)
            return provider_pb2.CreateResponse(id=object_id, properties=said(state))

    def Read(self, request: Any, context: Any) -> Any:
        with _told_to_engine(context):
            was = Was(request.urn, request.id, told(request.inputs), told(request.properties))
            found = self._lifecycle.read(type_of(request.urn), was)
            if found is None:
                return provider_pb2.ReadResponse()
            inputs, state = found
            return provider_pb2.ReadResponse(
                id=request.id, inputs=said(inputs), properties=said(state)
            )

    def Update(self, request: Any, context: Any) -> Any:
        token, news = type_of(request.urn), told(request.news)
        was = Was(request.urn, request.id, told(request.old_inputs), told(request.olds))
        if request.preview:
            after = self._lifecycle.preview_update(token, was, news)
            return provider_pb2.UpdateResponse(properties=said(after))
        with _told_to_engine(context, news):
            after = self._lifecycle.update(token, was, news)
            return provider_pb2.UpdateResponse(properties=said(after))

    def Delete(self, request: Any, context: Any) -> Any:
        with _told_to_engine(context):
            was = Was(request.urn, request.id, told(request.old_inputs), told(request.properties))
            self._lifecycle.delete(type_of(request.urn), was)
            return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        from .invokes import invoke

        args = told(request.args)
        with _told_to_engine(context):
            found = invoke(request.tok, self._lifecycle.cloud(args.get("region", "")), args)
            return provider_pb2.InvokeResponse(**{"return": said(found)})

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


class _told_to_engine:  # noqa: N801 - reads as a word of the language
    """Turn what the cloud refused into the protocol's errors."""

    def __init__(self, context: Any, inputs: Properties | None = None) -> None:
        self._context = context
        self._inputs = inputs or {}

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, HalfMadeError):
            self._half_made(error)
        if isinstance(error, CloudError):
            self._context.abort(grpc.StatusCode.UNKNOWN, str(error))

    def _half_made(self, error: HalfMadeError) -> None:
        """Say that it is there but not finished, so that the engine keeps it and comes again."""
        detail = any_pb2.Any()
        detail.Pack(
            provider_pb2.ErrorResourceInitFailed(
                id=error.id,
                properties=said(error.state),
                reasons=[str(error)],
                inputs=said(self._inputs),
            )
        )
        code = grpc.StatusCode.UNKNOWN
        status = status_pb2.Status(code=code.value[0], message=str(error), details=[detail])
        self._context.set_trailing_metadata(
            (("grpc-status-details-bin", status.SerializeToString()),)
        )
        self._context.abort(code, str(error))


def _unfolded(config: Properties) -> Properties:
    """Return the provider's settings: what isn't text comes as JSON in one."""

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value[:1] not in "{[tf":
            return value
        try:
            return json.loads(value)
        except ValueError:
            return value

    return {name: read(value) if value else value for name, value in config.items()}


def main() -> None:
    """Serve until the engine ends us."""
    store = Store(Path(os.environ.get("STAND_IN_AWS_STORE", ".")))
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(store), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
