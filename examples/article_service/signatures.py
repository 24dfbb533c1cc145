"""Signatures: the service reads a call only if it carries a fresh Standard Webhooks signature.

The signature is made with the secret that the service shares with Horai.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from urllib.parse import unquote

from .store import Delivery

TOLERANCE = 300
"""Seconds by which a timestamp may differ from our clock: an old request that is sent again is refused."""


class BadSignature(Exception):
    """Not from Horai, or not fresh."""


def verify(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    """Returns when one of the signatures is good; there are two while a secret is being rotated."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise BadSignature("The request has no timestamp, or an old one.")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    good = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(good, signature) for signature in given):
        raise BadSignature("The signature is not Horai's.")


def delivery_of(headers: Mapping[str, str], body: bytes) -> Delivery:
    """Return the delivery that a request with a valid signature describes."""
    payload = json.loads(body)["payload"]
    return Delivery(
        headers["idempotency-key"],
        unquote(headers["horai-unit"]),
        int(headers["horai-attempt"]),
        int(headers["horai-fence"]),
        payload["articleId"],
        payload["version"],
    )
