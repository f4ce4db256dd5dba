"""Signatures: those of the standard, and what a receiver refuses."""

import base64
import time

import pytest

from tamis.client import SignatureError, verify
from tamis.model.signatures import key_of, new_secret, sign

# The example that goes with the standard.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, STAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def now() -> int:
    return int(time.time())


def test_the_example_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"webhook-id": ID, "webhook-timestamp": str(STAMP), "webhook-signature": SIGNATURE}
    assert sign([SECRET], ID, STAMP, BODY) == headers
    monkeypatch.setattr(time, "time", lambda: STAMP + 299.0)
    assert verify(headers, BODY, SECRET) == ID


def test_one_good_signature_is_enough() -> None:
    old, new, strange = new_secret(), new_secret(), new_secret()
    headers = {name.title(): value for name, value in sign([new, old], "d1", now(), b"{}").items()}
    headers["Webhook-Signature"] = f"v1a,other v2,é {headers['Webhook-Signature']}"
    for secrets in (old, [new], [strange, old], (secret for secret in (old, new))):
        assert verify(headers, b"{}", secrets) == "d1"
    with pytest.raises(SignatureError, match="bad-signature"):
        verify(headers, b"{}", strange)
    with pytest.raises(SignatureError, match="bad-signature"):
        verify(headers, b"{} ", [old, new])
    with pytest.raises(SignatureError, match="bad-signature"):
        verify(headers, b"{}", [])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"webhook-signature": ""}, "no-signature"),
        ({"webhook-id": ""}, "no-signature"),
        ({"webhook-id": "d2"}, "bad-signature"),
        ({"webhook-timestamp": "soon"}, "bad-timestamp"),
        ({"webhook-timestamp": "²"}, "bad-timestamp"),
        ({"webhook-timestamp": "9" * 400}, "bad-timestamp"),
        ({"webhook-timestamp": -600}, "bad-timestamp"),
        ({"webhook-timestamp": +600}, "bad-timestamp"),
        ({"webhook-timestamp": -100}, "bad-signature"),
    ],
)
def test_changed_requests_are_refused(changed: dict[str, str | int], code: str) -> None:
    """Numbers are seconds from now, which is another time than when tests are collected."""
    sent = {name: value if isinstance(value, str) else str(now() + value) for name, value in changed.items()}
    headers = sign([SECRET], "d1", now(), b"{}")
    assert verify(headers, b"{}", SECRET) == "d1"
    with pytest.raises(SignatureError) as caught:
        verify(headers | sent, b"{}", SECRET)
    assert caught.value.code == code


def test_secrets_are_long_enough_and_not_too_long() -> None:
    assert len(key_of(new_secret())) == 32
    for size in (24, 64):
        assert len(key_of("whsec_" + base64.b64encode(b"x" * size).decode())) == size
    for wrong in (
        "",
        "whsec_",
        "whsec_!",
        SECRET.removeprefix("whsec_"),
        "whsec_" + "A" * 88 + "A",
        "whsec_é",
    ):
        with pytest.raises(SignatureError, match="bad-secret"):
            key_of(wrong)
    for size in (23, 65):
        with pytest.raises(SignatureError, match="bad-secret"):
            key_of("whsec_" + base64.b64encode(b"x" * size).decode())
