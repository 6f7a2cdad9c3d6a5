"""The lab's network: one bridge, its routes, kernel settings and firewall rules, and their end."""

import json
import re
from collections.abc import Collection, Mapping
from ipaddress import ip_network
from pathlib import Path

from . import counters
from .commands import run, run_quietly
from .errors import StepError

BRIDGE = "llm-lab0"
# Fixed, so that the bridge doesn't change its address with the first pod's.
_BRIDGE_MAC = "0a:58:0a:58:00:01"
POD_NETWORK = "10.88.0.0/16"
NODE_ADDRESS = "10.88.0.1"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_SERVICE_ADDRESS = "10.96.0.10"
FAMILIES = ("iptables", "ip6tables")
_PROXY_COUNTERS = ("ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts")

# What the lab, the kubelet, kube-proxy and the network plugins set. Their values before
# are recorded, and come back at the end.
SYSCTLS = (
    "net/ipv4/ip_forward",
    # The kernel turns this one when forwarding is turned, so it comes after it.
    "net/ipv4/conf/all/accept_redirects",
    "net/bridge/bridge-nf-call-iptables",
    "net/bridge/bridge-nf-call-ip6tables",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv6/conf/all/forwarding",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
_WANTED_SYSCTLS = {"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"}
_OWN_CHAIN = re.compile(r"(KUBE|CNI|LLM-LAB)-")

_RULES = f"""*nat
:LLM-LAB-MASQUERADE - [0:0]
-A LLM-LAB-MASQUERADE -s {POD_NETWORK} ! -d {POD_NETWORK} ! -o {BRIDGE} -j MASQUERADE
COMMIT
*filter
:LLM-LAB-INPUT - [0:0]
-A LLM-LAB-INPUT -i {BRIDGE} -j ACCEPT
:LLM-LAB-FORWARD - [0:0]
-A LLM-LAB-FORWARD -i {BRIDGE} -j ACCEPT
-A LLM-LAB-FORWARD -o {BRIDGE} -j ACCEPT
COMMIT
"""
_JUMPS = (
    ("nat", "POSTROUTING", "LLM-LAB-MASQUERADE"),
    ("filter", "INPUT", "LLM-LAB-INPUT"),
    ("filter", "FORWARD", "LLM-LAB-FORWARD"),
)


def ensure() -> None:
    """Make the bridge, the routes, the kernel settings and the rules that are not there yet."""
    if taken := conflicts(run_quietly(["ip", "-4", "route", "show"])):
        reason = f"the lab needs {POD_NETWORK} and {SERVICE_NETWORK}, but there is: {taken[0]}"
        raise StepError("setting up the network", reason)
    for module in ("br_netfilter", "overlay"):
        run_quietly(["modprobe", module])
    for name, value in _WANTED_SYSCTLS.items():
        _write_sysctl(name, value)
    if not Path("/sys/class/net", BRIDGE).exists():
        run("making the bridge", ["ip", "link", "add", BRIDGE, "type", "bridge"])
    run("setting up the bridge", ["ip", "link", "set", BRIDGE, "address", _BRIDGE_MAC, "up"])
    run(
        "giving the bridge its address",
        ["ip", "address", "replace", f"{NODE_ADDRESS}/16", "dev", BRIDGE],
    )
    # So that no packet for a Service leaves the machine when kube-proxy isn't there.
    run("routing the Services", ["ip", "route", "replace", SERVICE_NETWORK, "dev", BRIDGE])
    run("adding the firewall rules", ["iptables-restore", "-w", "--noflush"], stdin=_RULES)
    for table, chain, target in _JUMPS:
        _jump_once(table, chain, target)


def _jump_once(table: str, chain: str, target: str) -> None:
    if f"-A {chain} -j {target}" not in run_quietly(["iptables-save", "-t", table]).splitlines():
        run(
            f"adding the rule for {target}",
            ["iptables", "-w", "-t", table, "-I", chain, "-j", target],
        )


def conflicts(routes: str) -> list[str]:
    """List the routes to the lab's networks that are not the lab's.

    Args:
        routes: What `ip route` printed.
    """
    ours = [ip_network(POD_NETWORK), ip_network(SERVICE_NETWORK)]
    return [
        line
        for line in routes.splitlines()
        if re.match(r"\d", line)
        and f"dev {BRIDGE}" not in line
        and any(ip_network(line.split()[0]).overlaps(each) for each in ours)
        # A wider route (a VPN's, say) is no obstacle: the more exact one counts.
        and ip_network(line.split()[0]).prefixlen >= ours[0].prefixlen
    ]


def is_up() -> bool:
    """Tell whether the bridge and the Services' route are there."""
    routes = run_quietly(["ip", "route", "show", SERVICE_NETWORK])
    addresses = run_quietly(["ip", "-o", "address", "show", "dev", BRIDGE])
    return f"dev {BRIDGE}" in routes and f"{NODE_ADDRESS}/16" in addresses


def mtu() -> int:
    """The largest packet that gets out of the machine; pods must not send larger ones."""
    routes = json.loads(run_quietly(["ip", "-json", "route", "show", "default"]) or "[]")
    for route in routes:
        return int(Path("/sys/class/net", route["dev"], "mtu").read_text())
    return 1500


def remove(sysctls: Mapping[str, str], foreign_chains: Mapping[str, Collection[str]]) -> None:
    """Take everything back that `ensure` and the cluster's parts did to the network.

    Args:
        sysctls: The kernel settings before, by path below /proc/sys.
        foreign_chains: By program of `FAMILIES`, the chains that were there before.
    """
    for program in FAMILIES:
        rules = removal(run_quietly([f"{program}-save"]), foreign_chains.get(program, ()))
        if rules:
            run(
                f"removing the rules of {program}",
                [f"{program}-restore", "-w", "--noflush"],
                stdin=rules,
            )
    counters.remove(_PROXY_COUNTERS)
    for link in links_of(run_quietly(["ip", "-o", "link", "show", "master", BRIDGE])):
        run_quietly(["ip", "link", "delete", link])
    # The Services' route goes with it.
    run_quietly(["ip", "link", "delete", BRIDGE])
    # Whoever made another bridge since, such as Docker, needs forwarding as much as we did.
    if not links_of(run_quietly(["ip", "-o", "link", "show", "type", "bridge"])):
        for name, value in sysctls.items():
            _write_sysctl(name, value)


def links_of(listing: str) -> list[str]:
    """Read the interfaces' names from `ip -o link`."""
    return [line.split(": ")[1].partition("@")[0] for line in listing.splitlines() if ": " in line]


def read_sysctls() -> dict[str, str]:
    """Return the kernel settings that a lab changes, as they are now."""
    files = {name: Path("/proc/sys", name) for name in SYSCTLS}
    return {name: path.read_text().strip() for name, path in files.items() if path.exists()}


def _write_sysctl(name: str, value: str) -> None:
    path = Path("/proc/sys", name)
    if path.exists() and path.read_text().strip() != value:
        path.write_text(value)


def read_chains() -> dict[str, list[str]]:
    """Return, by program of `FAMILIES`, the chains now that a lab could take for its own."""
    return {program: own_chains(run_quietly([f"{program}-save"])) for program in FAMILIES}


def own_chains(saved: str) -> list[str]:
    """List the chains, as `table/chain`, whose names are like those that a cluster makes.

    Args:
        saved: What `iptables-save` printed.
    """
    chains: list[str] = []
    table = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":") and _OWN_CHAIN.match(line[1:]):
            chains.append(f"{table}/{line[1:].split()[0]}")
    return chains


def removal(saved: str, foreign: Collection[str]) -> str:
    """Write what `iptables-restore --noflush` needs to remove a cluster's chains and jumps.

    Args:
        saved: What `iptables-save` printed.
        foreign: The chains, as `table/chain`, that were there before the lab.
    """
    doomed = [chain for chain in own_chains(saved) if chain not in foreign]
    sections: list[str] = []
    for table in dict.fromkeys(chain.partition("/")[0] for chain in doomed):
        chains = [name for name in doomed if name.startswith(f"{table}/")]
        names = [name.partition("/")[2] for name in chains]
        sections.append(f"*{table}")
        sections += [f":{name} - [0:0]" for name in names]
        sections += [f"-D{rule[2:]}" for rule in _jumps_to(saved, table, set(names))]
        sections += [f"-X {name}" for name in names]
        sections.append("COMMIT")
    return "".join(f"{line}\n" for line in sections)


def _jumps_to(saved: str, table: str, names: Collection[str]) -> list[str]:
    """List the rules of a table that stand in other chains than `names`, but lead there."""
    rules: list[str] = []
    current = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            current = line[1:]
        if current != table or not line.startswith("-A "):
            continue
        target = re.search(r" -[jg] (\S+)", line)
        if target and target[1] in names and line.split()[1] not in names:
            rules.append(line)
    return rules
