"""Signatures of webhooks, as Standard Webhooks 1.0 has them: made here, and checked by receivers.

What is signed is `id.timestamp.body`, by HMAC-SHA256 with a secret that sender and receiver share; the header
`webhook-signature` has one signature for each secret that is good at the moment.
"""

import base64
import binascii
import hashlib
import hmac
import secrets as random
import time
from collections.abc import Iterable, Mapping

from tamis.errors import TamisError

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""The headers."""

PREFIX = "whsec_"
"""How secrets begin, so that people and scanners know one when they see it."""

SHORTEST, LONGEST, USUAL = 24, 64, 32
"""Bytes of a secret."""

TOLERANCE = 300
"""Seconds by which clocks may differ; what is older may come from somebody who listened."""

_VERSION = "v1"


class SignatureError(TamisError):
    """A request that does not come from who it should come from; answer it with 401."""


def new_secret() -> str:
    """A secret that nobody guesses."""
    return PREFIX + base64.b64encode(random.token_bytes(USUAL)).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret stands for; `SignatureError` if it is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        reason = f"a secret is {PREFIX} and the base64 of {SHORTEST} to {LONGEST} bytes"
        raise SignatureError("bad-secret", reason)
    return key


def signed(secrets: Iterable[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a request that is signed with each of some secrets."""
    signatures = " ".join(_signature(key_of(secret), id, str(timestamp), body) for secret in secrets)
    return {ID: id, TIMESTAMP: str(timestamp), SIGNATURE: signatures}


def verify(headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str]) -> str:
    """The id of what was sent, if it was signed with one of the secrets lately; else `SignatureError`.

    The same may be sent twice: who must not do things twice remembers ids.
    """
    given = {name.lower(): value for name, value in headers.items()}
    for name in (ID, TIMESTAMP, SIGNATURE):
        if not given.get(name):
            raise SignatureError("no-signature", f"there is no header {name}")
    id, timestamp = given[ID], given[TIMESTAMP]
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 15):
        raise SignatureError("bad-timestamp", f"{TIMESTAMP} is a number of seconds since 1970")
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        reason = f"it was signed more than {TOLERANCE} s ago, or will be; is the clock right?"
        raise SignatureError("bad-timestamp", reason)
    keys = [key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    good = [_signature(key, id, timestamp, body).encode() for key in keys]
    theirs = [one.encode() for one in given[SIGNATURE].split(" ")]
    # In constant time: how long it takes tells nothing about a secret.
    if not any(hmac.compare_digest(one, other) for one in theirs for other in good):
        raise SignatureError("bad-signature", "it is signed with none of the secrets")
    return id


def _signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(key, b".".join((id.encode(), timestamp.encode(), body)), hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"
