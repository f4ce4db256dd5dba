"""Signatures of webhooks by Standard Webhooks 1.0: `sign` for senders, `verify` for receivers.

The signature is HMAC-SHA256 over `id.timestamp.body` with a shared secret. During a rotation of secrets the
header `webhook-signature` has one signature for each valid secret.
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
"""Prefix of secrets, so that people and secret scanners recognise them."""

SHORTEST, LONGEST, DEFAULT = 24, 64, 32
"""Bytes of a secret."""

TOLERANCE = 300
"""Seconds that clocks may differ; older requests may be replays."""

_VERSION = "v1"


class SignatureError(TamisError):
    """A request without a valid signature; answer it with 401."""


def new_secret() -> str:
    """A random secret."""
    return PREFIX + base64.b64encode(random.token_bytes(DEFAULT)).decode()


def key_of(secret: str) -> bytes:
    """The key of a secret; `SignatureError` if its form is wrong."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        reason = f"a secret is {PREFIX} and the base64 of {SHORTEST} to {LONGEST} bytes"
        raise SignatureError("bad-secret", reason)
    return key


def sign(secrets: Iterable[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a request, signed with each of the secrets."""
    signatures = " ".join(_signature(key_of(secret), id, str(timestamp), body) for secret in secrets)
    return {ID: id, TIMESTAMP: str(timestamp), SIGNATURE: signatures}


def verify(headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str]) -> str:
    """The id of a request that was recently signed with one of the secrets; else `SignatureError`.

    A delivery may arrive twice: de-duplicate by id.
    """
    lower_case = {name.lower(): value for name, value in headers.items()}
    for name in (ID, TIMESTAMP, SIGNATURE):
        if not lower_case.get(name):
            raise SignatureError("no-signature", f"there is no header {name}")
    id, timestamp = lower_case[ID], lower_case[TIMESTAMP]
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 15):
        raise SignatureError("bad-timestamp", f"{TIMESTAMP} is a number of seconds since 1970")
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        reason = f"the signature is more than {TOLERANCE} s old or in the future; check the clocks"
        raise SignatureError("bad-timestamp", reason)
    keys = [key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    good = [_signature(key, id, timestamp, body).encode() for key in keys]
    theirs = [one.encode() for one in lower_case[SIGNATURE].split(" ")]
    # Constant time, against timing attacks.
    if not any(hmac.compare_digest(one, other) for one in theirs for other in good):
        raise SignatureError("bad-signature", "the signature matches none of the secrets")
    return id


def _signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(key, b".".join((id.encode(), timestamp.encode(), body)), hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"
