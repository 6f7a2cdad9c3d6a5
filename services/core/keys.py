"""API keys: the only form in which they are kept, and how much of one may be shown."""

import hashlib

SHOWN_CHARACTERS = 10
"""How much of a key a person may see, to tell two keys apart."""


def key_hash(key: bytes) -> str:
    """Return what is stored and compared: keys are random, so a plain SHA-256 can't be guessed."""
    return hashlib.sha256(key).hexdigest()


def shown_prefix(key: str) -> str:
    """Return the part that lists and logs may show; nothing of a key too short to spare it."""
    return key[:SHOWN_CHARACTERS] if len(key) >= 4 * SHOWN_CHARACTERS else ""
