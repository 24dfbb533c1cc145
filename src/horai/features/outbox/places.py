"""The addresses of sinks: how they are checked, sealed and shown."""

import re
from collections.abc import Container, Mapping
from typing import Any, Final

from horai.core.encryption import Place
from horai.core.masking import origin_text
from horai.core.target_checks import SUBJECT, check_headers, check_url
from horai.core.validation import Validation
from horai.features.outbox.store import SinkKind
from horai.text import Hint, Wrong, mismatch

SINK_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
EVENT_TYPE: Final = re.compile(r"horai\.[a-z]+\.[a-z_]+")
_FIELDS: Final[Mapping[SinkKind, tuple[str, ...]]] = {
    SinkKind.WEBHOOK: ("url", "headers"),
    SinkKind.NATS: ("broker", "subject"),
    SinkKind.KAFKA: ("broker", "topic"),
    SinkKind.LOG: (),
}


def place_of_sink(name: str, place: Mapping[str, Any]) -> Place:
    """Return the place of the secrets of a sink."""
    return ("sink", name, "place", origin_text(place))


def checked_place(kind: SinkKind, given: Mapping[str, Any], brokers: Container[str], faults: Validation) -> None:
    """Check the address of a sink; `brokers` are the names that the operator allows."""
    for field in sorted({field for fields in _FIELDS.values() for field in fields} - {*_FIELDS[kind]}):
        if given.get(field) is not None:
            faults.add(field, Wrong.NOT_FOR_SINK(kind=kind.value))
    for field in _FIELDS[kind]:
        if given.get(field) is None and field != "headers":
            faults.add(field, Wrong.MISSING())
    if (url := given.get("url")) is not None and kind is SinkKind.WEBHOOK:
        faults.reading("url", lambda: check_url(url), None)
        faults.reading("headers", lambda: check_headers(given.get("headers") or {}), None)
    if (broker := given.get("broker")) is not None and broker not in brokers:
        faults.add("broker", Wrong.NO_BROKER(), Hint.ALLOW_BROKER())
    for field in ("subject", "topic"):
        if (text := given.get(field)) is not None and not SUBJECT.fullmatch(text):
            faults.add(field, mismatch(text, SUBJECT))


def place_in(kind: SinkKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that make up the address of this kind."""
    return {field: given[field] for field in _FIELDS[kind] if given.get(field) is not None}
