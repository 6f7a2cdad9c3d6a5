"""The certificates that sign those of RDS, as Amazon publishes them for each region.

Addresses: RDS user guide, "Using SSL/TLS to encrypt a connection to a DB cluster", and its edition
for China (read 2026-11).
"""

import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from lab.commands import write
from lab.progress import Report

from .errors import DeployError

STEP = "fetching the certificates of RDS"
_BASES = {
    "aws": "https://truststore.pki.rds.amazonaws.com",
    "aws-us-gov": "https://truststore.pki.us-gov-west-1.rds.amazonaws.com",
    "aws-cn": "https://rds-truststore.s3.cn-north-1.amazonaws.com.cn",
}
_WAIT_SECONDS = 30
# A region's has a few certificates, that of all regions 108 in 160 KB.
_LARGEST_BYTES = 4 << 20

_INSTEAD = (
    "See that this machine reaches it (network, proxy in HTTPS_PROXY); or fetch it on another, and "
    "name the file in the foundation's settings: llm-platform:database_ca_file"
)


def source(partition: str, region: str) -> str:
    """Return where a region's certificates are published."""
    return f"{_BASES[partition]}/{region}/{region}-bundle.pem"


def bundle(url: str, folder: Path, report: Report) -> Path:
    """Return the file with the certificates; it is fetched once, and then kept.

    Args:
        url: Where they are published.
        folder: Where they are kept.
        report: Takes a line of progress.

    Raises:
        DeployError: they can't be fetched, or what came are no certificates; the message names the
            address and the setting that does without it.
    """
    file = folder / url.rpartition("/")[2]
    if not file.exists() or not are_certificates(file.read_text()):
        report(f"fetching {url}")
        text = _fetched(url)
        if not are_certificates(text):
            raise DeployError(STEP, f"{url} answers no certificates: {text[:80]!r}. {_INSTEAD}")
        write(file, text)
    return file


def are_certificates(text: str) -> bool:
    """Tell whether a text holds certificates as PEM, and none that is broken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError, TypeError):
        return False
    return True


def _fetched(url: str) -> str:
    try:
        # The address is one of ours.
        with urllib.request.urlopen(url, timeout=_WAIT_SECONDS) as reply:  # noqa: S310
            content = reply.read(_LARGEST_BYTES + 1)
            promised = int(reply.headers.get("Content-Length") or len(content))
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        raise DeployError(STEP, f"{url} can't be read: {error}. {_INSTEAD}") from None
    if len(content) > _LARGEST_BYTES or len(content) < promised:
        raise DeployError(STEP, f"{url} is too long, or broke off. {_INSTEAD}")
    return content.decode(errors="replace")
