"""API keys: how they look, and the only form in which they are kept."""

import hashlib
import secrets

PREFIX = "llmp_"
SHOWN_CHARACTERS = 10
"""How much of a key a person may see, to tell two keys apart."""


def new_key() -> str:
    """Make a key of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(key: bytes) -> str:
    """Return what is stored and compared: keys are random, so a plain SHA-256 can't be guessed."""
    return hashlib.sha256(key).hexdigest()


def shown_prefix(key: str) -> str:
    """Return the part that lists and logs may show; nothing of a key too short to spare it."""
    return key[:SHOWN_CHARACTERS] if len(key) >= 4 * SHOWN_CHARACTERS else ""
