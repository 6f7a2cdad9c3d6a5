"""The rendered configuration of the cluster's programs."""

import json
import tomllib
from pathlib import Path

import pytest

from lab import components, configuration, containerd, manifests, network
from lab.components import Binaries
from lab.paths import LabPaths

PATHS = LabPaths(state=Path("/state/lab"), run=Path("/run/llm-platform"))
BINARIES = Binaries(*(Path("/bin", name) for name in ("kube", "registry", "coredns", "pause")))


def test_containerds_configuration_keeps_to_the_labs_folders() -> None:
    text = containerd.config(PATHS, "registry/pause:1", Path("/usr/lib/cni"), "native")
    parsed = tomllib.loads(text)
    cri = parsed["plugins"]["io.containerd.grpc.v1.cri"]
    assert parsed["root"] == "/state/lab/containerd"
    assert parsed["state"] == "/run/llm-platform/containerd"
    assert parsed["grpc"]["address"] == "/run/llm-platform/containerd.sock"
    assert cri["sandbox_image"] == "registry/pause:1"
    assert cri["restrict_oom_score_adj"] is True
    assert cri["cni"]["bin_dir"] == "/usr/lib/cni"
    assert cri["containerd"]["snapshotter"] == "native"
    options = cri["containerd"]["runtimes"]["runc"]["options"]
    assert options == {"SystemdCgroup": False, "Root": "/run/llm-platform/runc"}


def test_pods_get_addresses_that_no_part_of_the_node_has() -> None:
    bridge, portmap = json.loads(containerd.cni_config(PATHS, 1400))["plugins"]
    assert bridge["bridge"] == network.BRIDGE
    assert bridge["mtu"] == 1400
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.1.0"}]]
    assert portmap["type"] == "portmap"


def test_every_address_that_a_part_listens_on_is_the_labs_or_the_machines_own() -> None:
    kubelet, proxy = configuration.kubelet_config(PATHS), configuration.proxy_config(PATHS)
    assert kubelet["address"] == network.NODE_ADDRESS
    assert kubelet["healthzBindAddress"] == "127.0.0.1"
    assert proxy["nodePortAddresses"] == ["127.0.0.0/8", network.POD_NETWORK]
    assert configuration.registry_config(PATHS)["http"]["addr"] == "10.88.0.1:5000"
    words = [str(word) for part in components.parts(PATHS, BINARIES).values() for word in part.argv]
    assert not [word for word in words if "0.0.0.0" in word]  # noqa: S104


def test_every_path_that_a_part_is_given_is_the_labs_own() -> None:
    words = [
        str(word).rpartition("=")[2]
        for part in components.parts(PATHS, BINARIES).values()
        for word in part.argv
    ]
    absolute = [word for word in words if word.startswith("/") and word not in {"/bin/kube"}]
    assert absolute
    assert all(word.startswith(("/state/lab/", "/run/llm-platform/", "/bin/")) for word in absolute)


def test_the_machines_connection_tracking_is_left_alone() -> None:
    assert configuration.proxy_config(PATHS)["conntrack"] == {
        "maxPerCore": 0,
        "min": 0,
        "tcpEstablishedTimeout": "0s",
        "tcpCloseWaitTimeout": "0s",
    }


def test_the_environment_of_the_parts_has_nothing_of_the_users() -> None:
    outer = {"HOME": "/root", "PATH": "/home/me/bin", "KUBECONFIG": "/x", "AWS_PROFILE": "me"}
    environment = components.environment(outer)
    assert set(environment) == {"HOME", "PATH", "OTEL_TRACES_EXPORTER"}
    assert "/home/me/bin" not in environment["PATH"]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (["nameserver 192.0.2.1\nsearch x\n"], "nameserver 192.0.2.1\n"),
        (["nameserver 127.0.0.53\n", "nameserver 192.0.2.7\n"], "nameserver 192.0.2.7\n"),
        (["nameserver ::1\nnameserver 192.0.2.1\n"], "nameserver 192.0.2.1\n"),
        (["nameserver 127.0.0.1\n"], ""),
        (["# nameserver 192.0.2.1\nnameserver\n"], ""),
        ([], ""),
    ],
)
def test_pods_get_resolvers_that_they_can_reach(candidates: list[str], expected: str) -> None:
    assert configuration.usable_resolvers(candidates) == expected


@pytest.mark.parametrize("forwards", [True, False])
def test_dns_asks_outside_only_where_there_is_somebody_to_ask(forwards: bool) -> None:
    objects = dict(manifests.dns("image", forwards=forwards))
    corefile = objects["/api/v1/namespaces/kube-system/configmaps/coredns"]["data"]["Corefile"]
    assert ("forward . /etc/resolv.conf" in corefile) is forwards
    assert "FORWARD" not in corefile
    assert corefile.count("{") == corefile.count("}")


def test_every_object_lies_where_its_manifest_says() -> None:
    for path, manifest in manifests.everything("image", forwards=True):
        version, metadata = manifest["apiVersion"], manifest["metadata"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        namespace = metadata.get("namespace")
        middle = f"/namespaces/{namespace}" if namespace else ""
        kind = manifest["kind"].lower()
        plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        assert path == f"{root}{middle}/{plural}/{metadata['name']}"
