"""The check, for receivers of HTTP calls, that Horai sent a request."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from horai.core.callbacks import verify

TOLERANCE = timedelta(minutes=5)


def verify_webhook(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: timedelta = TOLERANCE,
    now: datetime | None = None,
) -> bool:
    """Return whether a holder of `secret` signed this request, within `tolerance` before or after `now`.

    `body` is the raw body as it arrived. With several secrets, a signature by one of them is enough. Raises ValueError
    if a secret is not `whsec_` followed by base64; nothing in a request raises.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    moment = now or datetime.now(UTC)
    return any(verify(each, headers, body, moment, tolerance) for each in secrets)
