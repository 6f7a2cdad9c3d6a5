"""The lab's own containerd: its configuration, apart from a containerd of the machine."""

import json
from pathlib import Path

from . import network
from .commands import run_quietly, write
from .host import CNI_NETWORK
from .paths import LabPaths

REGISTRY = f"{network.NODE_ADDRESS}:5000"
PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))

_CONFIG = """version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing",
]

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # The machine may be a container itself, where nobody may ask for less than it has.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{runc}"

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{certs}"
"""


def config(paths: LabPaths, pause: str, plugins: Path, snapshotter: str) -> str:
    """Render containerd's configuration.

    Args:
        paths: The lab's folders.
        pause: The image of a pod's first container.
        plugins: The folder with the network plugins.
        snapshotter: How layers are stacked: `overlayfs`, or `native` where that can't be.
    """
    return _CONFIG.format(
        root=paths.state / "containerd",
        state=paths.run / "containerd",
        socket=paths.containerd_socket,
        pause=pause,
        plugins=plugins,
        cni=paths.config / "cni",
        certs=paths.config / "certs.d",
        runc=paths.run / "runc",
        snapshotter=snapshotter,
    )


def cni_config(paths: LabPaths, mtu: int) -> str:
    """Render the network that pods join: the lab's bridge, and ports of the host."""
    bridge = {
        "type": "bridge",
        "bridge": network.BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "mtu": mtu,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": network.POD_NETWORK, "rangeStart": "10.88.1.0"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(paths.run / "addresses"),
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps(
        {"cniVersion": "0.4.0", "name": CNI_NETWORK, "plugins": [bridge, portmap]}, indent=2
    )


def write_config(paths: LabPaths, pause: str) -> Path:
    """Write all of containerd's configuration and return its main file."""
    plugins = next((each for each in PLUGIN_FOLDERS if (each / "bridge").exists()), None)
    write(paths.config / "cni" / "10-lab.conflist", cni_config(paths, network.mtu()))
    write(
        paths.config / "certs.d" / REGISTRY / "hosts.toml",
        f'server = "http://{REGISTRY}"\n\n[host."http://{REGISTRY}"]\n'
        'capabilities = ["pull", "resolve"]\n',
    )
    return write(
        paths.config / "containerd.toml",
        config(paths, pause, plugins or PLUGIN_FOLDERS[0], _snapshotter(paths.state)),
    )


def _snapshotter(folder: Path) -> str:
    kind = run_quietly(["stat", "--file-system", "--format=%T", folder]).strip()
    # Layers can't be stacked on something that is stacked itself.
    return "native" if kind == "overlayfs" else "overlayfs"
