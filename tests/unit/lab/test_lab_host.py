"""What the lab finds on the machine, and what it takes for its own."""

from pathlib import Path

import pytest

from lab import host
from lab.errors import StepError
from lab.host import HostRecord
from lab.paths import LabPaths

MOUNTS = """proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
shm /run/llm-platform/containerd/sandbox/1/shm tmpfs rw 0 0
overlay /run/llm-platform/containerd/task/1/rootfs overlay rw 0 0
tmpfs /run/llm-platform-other/x tmpfs rw 0 0
tmpfs /home/a\\040b/kubelet/pods/1/volumes/secret tmpfs rw 0 0
nsfs /run/llm-platform nsfs rw 0 0
"""


def test_mounts_of_the_lab_are_listed_last_first_and_no_others() -> None:
    assert host.mounts_below(MOUNTS, [Path("/run/llm-platform")]) == [
        "/run/llm-platform",
        "/run/llm-platform/containerd/task/1/rootfs",
        "/run/llm-platform/containerd/sandbox/1/shm",
    ]


def test_a_mount_point_may_have_a_space() -> None:
    assert host.mounts_below(MOUNTS, [Path("/home/a b/kubelet")]) == [
        "/home/a b/kubelet/pods/1/volumes/secret"
    ]


def test_control_groups_are_found_in_both_versions() -> None:
    assert host.cgroup_roots(MOUNTS) == [
        Path("/sys/fs/cgroup/memory"),
        Path("/sys/fs/cgroup/systemd"),
        Path("/sys/fs/cgroup/unified"),
    ]


def test_the_machine_is_recorded_once_and_never_as_the_lab_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = HostRecord({"net/ipv4/ip_forward": "0"}, {"iptables": []}, ["/run/containerd"])
    monkeypatch.setattr(HostRecord, "now", classmethod(lambda _: before))
    assert HostRecord.ensure(tmp_path / "host.json") == before
    changed = HostRecord({"net/ipv4/ip_forward": "1"}, {"iptables": ["nat/KUBE-X"]}, [])
    monkeypatch.setattr(HostRecord, "now", classmethod(lambda _: changed))
    assert HostRecord.ensure(tmp_path / "host.json") == before


def test_a_node_of_another_cluster_is_left_alone() -> None:
    HostRecord({}, {"iptables": ["nat/CNI-a"]}, []).require_no_cluster()
    node = HostRecord({}, {"iptables": ["nat/KUBE-SERVICES"], "ip6tables": []}, [])
    with pytest.raises(StepError, match=r"a node of another Kubernetes.*CONTEXT="):
        node.require_no_cluster()


def test_only_results_of_our_pods_are_removed_from_the_common_folder(tmp_path: Path) -> None:
    paths = LabPaths(state=tmp_path / "state", run=tmp_path / "run")
    (paths.state / "containerd/io.containerd.grpc.v1.cri/sandboxes/ab12").mkdir(parents=True)
    results = tmp_path / "cni" / "results"
    results.mkdir(parents=True)
    for name in ("llm-platform-lab-cd34-eth0", "cni-loopback-ab12-lo", "cni-loopback-ef56-lo"):
        (results / name).touch()
    host._remove_network_results(paths, tmp_path / "cni")
    assert [path.name for path in results.iterdir()] == ["cni-loopback-ef56-lo"]


def test_only_log_links_into_our_logs_are_removed(tmp_path: Path) -> None:
    links, logs = tmp_path / "containers", tmp_path / "logs"
    links.mkdir()
    (links / "ours.log").symlink_to(logs / "pods" / "a" / "0.log")
    (links / "theirs.log").symlink_to(tmp_path / "logs-of-others" / "0.log")
    host._remove_log_links(links, logs)
    assert [path.name for path in links.iterdir()] == ["theirs.log"]


def test_a_folder_with_something_mounted_in_it_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(host, "mounts_below", lambda _, folders: [f"{folders[0]}/data"])
    with pytest.raises(StepError, match="data can't be unmounted"):
        host._remove_tree(tmp_path)
    assert (tmp_path / "data").exists()
    monkeypatch.setattr(host, "mounts_below", lambda *_: [])
    host._remove_tree(tmp_path)
    assert not tmp_path.exists()
