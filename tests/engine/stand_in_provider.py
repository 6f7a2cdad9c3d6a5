"""A stand-in for the Kubernetes provider: a small cluster in one JSON file.

The engine starts it as ``pulumi-resource-kubernetes``. It keeps what it was told to create, gives
Services an address and token Secrets a token, deletes what is in a namespace together with it, and
notes every call in a log, so that tests see the order in which the engine asked.
"""
# ruff: noqa: N802 - the methods have the protocol's names

import base64
import json
import os
import sys
import time
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

CLUSTER = Path(os.environ.get("STAND_IN_CLUSTER", "cluster.json"))
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


class Cluster:
    """The objects by kind, namespace and name, and the log of what was asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = json.loads(path.read_text()) if path.exists() else {"objects": {}, "log": []}
        self.objects: dict[str, Any] = known["objects"]
        self.log: list[str] = known["log"]

    def note(self, call: str, key: str) -> None:
        self.log.append(f"{call} {key}")
        self._path.write_text(json.dumps({"objects": self.objects, "log": self.log}))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)
        kind, _, name = key.split("/")
        if kind == "Namespace":
            inside = [other for other in self.objects if other.split("/")[1] == name]
            for other in inside:
                del self.objects[other]


def plain(value: Any) -> Any:
    """Take the engine's secret wrappers off."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return plain(value["value"])
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def key_of(urn: str, inputs: dict[str, Any]) -> str:
    """Return kind/namespace/name."""
    kind = urn.split("::")[2].rpartition(":")[2]
    metadata = plain(inputs).get("metadata", {})
    return f"{kind}/{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def told(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return properties as a plain dictionary, secret wrappers included."""
    return json_format.MessageToDict(struct)


def given_back(urn: str, inputs: dict[str, Any]) -> struct_pb2.Struct:
    """Return an object as the cluster has it."""
    kind = urn.split("::")[2].rpartition(":")[2]
    state = json.loads(json.dumps(inputs))
    if kind == "Service":
        state["spec"]["clusterIP"] = "10.96.0.99"
    if kind == "Secret" and state.get("type") == "kubernetes.io/service-account-token":
        state["data"] = {"token": base64.b64encode(b"canary-7f3a-token").decode()}
    return json_format.ParseDict(state, struct_pb2.Struct())


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=True, accept_outputs=True
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="4.34.2")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, acceptResources=True, acceptOutputs=True, supportsPreview=True
        )

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        old, new = plain(told(request.old_inputs)), plain(told(request.news))
        changed = sorted(field for field in {*old, *new} if old.get(field) != new.get(field))
        kinds = provider_pb2.DiffResponse
        moved = key_of(request.urn, old) != key_of(request.urn, new)
        return provider_pb2.DiffResponse(
            changes=kinds.DIFF_SOME if changed else kinds.DIFF_NONE,
            diffs=changed,
            replaces=["metadata"] if moved else [],
        )

    def Create(self, request: Any, context: Any) -> Any:
        inputs = told(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=request.properties)
        key = key_of(request.urn, inputs)
        if key in self._cluster.objects:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{key} already exists")
        state = given_back(request.urn, inputs)
        self._cluster.objects[key] = plain(told(state))
        self._cluster.note("create", key)
        return provider_pb2.CreateResponse(id=key, properties=state)

    def Read(self, request: Any, context: Any) -> Any:
        if request.id not in self._cluster.objects:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    def Update(self, request: Any, context: Any) -> Any:
        if request.preview:
            return provider_pb2.UpdateResponse(properties=request.news)
        state = given_back(request.urn, told(request.news))
        self._cluster.objects[request.id] = plain(told(state))
        self._cluster.note("update", request.id)
        return provider_pb2.UpdateResponse(properties=state)

    def Delete(self, request: Any, context: Any) -> Any:
        self._cluster.delete(request.id)
        self._cluster.note("delete", request.id)
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


def main() -> None:
    """Serve until the engine ends us."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(Cluster(CLUSTER)), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
