"""The cluster's keys and certificates, made by the `openssl` program."""

import base64
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import network
from .commands import run, write

DAYS = "3650"
NODE_NAME = "llm-platform-lab"
_EXTENSIONS = """
[req]
distinguished_name = dn
[dn]
[ca]
basicConstraints = critical,CA:TRUE
keyUsage = critical,digitalSignature,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature,keyEncipherment
extendedKeyUsage = {usage}
{names}
"""


@dataclass(frozen=True)
class Certificate:
    """A certificate to be made.

    Args:
        name: Of its files.
        common_name: The user's name; of a server, just a name.
        groups: The user's groups.
        authority: The name of the authority that signs it.
        usage: What it may be used for: `clientAuth`, `serverAuth` or both.
        server_names: What clients call the server, as openssl writes them (`IP:…`, `DNS:…`).
    """

    name: str
    common_name: str
    groups: Sequence[str] = ()
    authority: str = "ca"
    usage: str = "clientAuth"
    server_names: Sequence[str] = ()

    @property
    def subject(self) -> str:
        """The subject as openssl takes it."""
        return "".join(f"/O={group}" for group in self.groups) + f"/CN={self.common_name}"


AUTHORITIES = ("ca", "front-proxy-ca", "etcd-ca")
_API_NAMES = (
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local",
    "DNS:localhost",
    f"IP:{network.API_SERVICE_ADDRESS}",
    f"IP:{network.NODE_ADDRESS}",
    "IP:127.0.0.1",
)
CERTIFICATES = (
    Certificate("admin", "llm-platform-lab-admin", ["system:masters"]),
    Certificate("controller-manager", "system:kube-controller-manager"),
    Certificate("scheduler", "system:kube-scheduler"),
    Certificate("proxy", "system:kube-proxy"),
    Certificate("volumes", "llm-platform-lab-volumes"),
    Certificate("node", f"system:node:{NODE_NAME}", ["system:nodes"]),
    Certificate("apiserver-kubelet-client", "llm-platform-lab-apiserver"),
    Certificate("apiserver", "kube-apiserver", usage="serverAuth", server_names=_API_NAMES),
    Certificate(
        "kubelet",
        NODE_NAME,
        usage="serverAuth",
        server_names=(f"DNS:{NODE_NAME}", f"IP:{network.NODE_ADDRESS}"),
    ),
    # Aggregated APIs (metrics) believe the API server only with this one.
    Certificate("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
    Certificate("etcd-client", "kube-apiserver", authority="etcd-ca"),
    Certificate(
        "etcd",
        "etcd",
        authority="etcd-ca",
        usage="serverAuth,clientAuth",
        server_names=("DNS:localhost", "IP:127.0.0.1"),
    ),
)


def ensure(folder: Path) -> None:
    """Make all keys and certificates, unless they are there; all of them appear at once."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".pki."))
    try:
        for authority in AUTHORITIES:
            _make_authority(temporary, authority)
        for certificate in CERTIFICATES:
            _make_certificate(temporary, certificate)
        _make_key(temporary / "service-accounts.key")
        run(
            "writing the service accounts' public key",
            ["openssl", "pkey", "-in", temporary / "service-accounts.key", "-pubout",
             "-out", temporary / "service-accounts.pub"],
        )  # fmt: skip
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def extensions(certificate: Certificate) -> str:
    """Render the openssl configuration for a certificate."""
    names = ",".join(certificate.server_names)
    return _EXTENSIONS.format(
        usage=certificate.usage, names=f"subjectAltName = {names}" if names else ""
    )


def _make_key(path: Path) -> None:
    path.touch(mode=0o600)
    run(
        f"making the key {path.name}",
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-out", path],
    )  # fmt: skip


def _make_authority(folder: Path, name: str) -> None:
    _make_key(folder / f"{name}.key")
    config = write(folder / f"{name}.cnf", extensions(Certificate(name, name)))
    run(
        f"making the authority {name}",
        ["openssl", "req", "-x509", "-new", "-sha256", "-days", DAYS, "-config", config,
         "-extensions", "ca", "-subj", f"/CN=llm-platform-lab-{name}",
         "-key", folder / f"{name}.key", "-out", folder / f"{name}.crt"],
    )  # fmt: skip


def _make_certificate(folder: Path, certificate: Certificate) -> None:
    key, name = folder / f"{certificate.name}.key", certificate.name
    _make_key(key)
    config = write(folder / f"{name}.cnf", extensions(certificate))
    request = run(
        f"asking for the certificate {name}",
        ["openssl", "req", "-new", "-config", config, "-subj", certificate.subject, "-key", key],
    )
    authority = folder / certificate.authority
    run(
        f"signing the certificate {name}",
        ["openssl", "x509", "-req", "-sha256", "-days", DAYS, "-CA", f"{authority}.crt",
         "-CAkey", f"{authority}.key", "-CAcreateserial", "-extfile", config,
         "-extensions", "leaf", "-out", folder / f"{name}.crt"],
        stdin=request,
    )  # fmt: skip


def kubeconfig(folder: Path, user: str, context: str, server: str) -> str:
    """Render a kubeconfig, as JSON (which is YAML), with the certificates inside it.

    Args:
        folder: Where the certificates are.
        user: The name of the user's certificate.
        context: The name of the context, the cluster and the user in it.
        server: The API server's URL.
    """

    def content(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": content("ca.crt")}
    credentials = {
        "client-certificate-data": content(f"{user}.crt"),
        "client-key-data": content(f"{user}.key"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": context, "cluster": cluster}],
            "users": [{"name": context, "user": credentials}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        },
        indent=2,
    )
