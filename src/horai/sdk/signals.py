"""Signals as a caller writes them."""

from typing import Any

from horai.features.steps.rules import Signal
from horai.sdk.payloads import shape_of


def signal_of(name: str, payload: object, idempotency_key: str | None) -> Signal:
    """Return a signal with its payload as JSON text. Raises `Invalid` if the name or the payload is not accepted."""
    return Signal(name, shape_of(Any).encode(payload), idempotency_key)
