"""CloudEvents 1.0 around a change: structured (one JSON document) or binary (attributes in `ce-…` headers).

Required attributes are checked and extensions are ignored. Batches and data that is not JSON are rejected.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from horai.core.jsontext import JsonError, check_text, parse_json

SPEC_VERSION = "1.0"
ATTRIBUTE_LIMIT = 2_000
_STRUCTURED = "application/cloudevents"
_MARK = b'"specversion"'


class Poison(Exception):
    """A message that cannot be read, no matter how often it is delivered; the text is the reason."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint

    @property
    def words(self) -> str:
        """The reason, followed by the hint if there is one."""
        return self.reason if self.hint is None else f"{self.reason}. {self.hint}"


@dataclass(frozen=True, slots=True)
class Envelope:
    """The document inside a message and its CloudEvent attributes; these are None for a bare document."""

    data: bytes
    id: str | None = None
    source: str | None = None
    subject: str | None = None
    time: str | None = None


def open_envelope(body: bytes, headers: Mapping[str, str]) -> Envelope:
    """Return the content of a message. The names in `headers` must be in lower case."""
    media = headers.get("content-type", "").strip().lower()
    if media.startswith(f"{_STRUCTURED}-batch"):
        raise Poison("a batch of CloudEvents is not supported", "Publish each event as a separate message.")
    if "ce-specversion" in headers:
        attributes = {name[3:]: _decoded(value) for name, value in headers.items() if name.startswith("ce-")}
        _require_json(media)
        return _envelope(attributes, body)
    if media.startswith(_STRUCTURED) or _MARK in body:
        return _structured(body, is_named=media.startswith(_STRUCTURED))
    return Envelope(body)


def _structured(body: bytes, *, is_named: bool) -> Envelope:
    try:
        value = parse_json(body)
    except JsonError as error:
        raise Poison(str(error).replace("the body", "the event")) from error
    if not isinstance(value, dict) or (not is_named and "specversion" not in value):
        return Envelope(body)
    attributes = cast("dict[str, Any]", value)
    _require_json(_attribute(attributes, "datacontenttype") or "")
    return _envelope(attributes, _data(attributes, body))


def _data(attributes: Mapping[str, Any], body: bytes) -> bytes:
    if ("data" in attributes) == ("data_base64" in attributes):
        raise Poison("data: is missing, or given twice")
    if "data" in attributes:
        return bytes(msgspec.json.decode(body, type=dict[str, msgspec.Raw])["data"])
    try:
        return base64.b64decode(attributes["data_base64"], validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise Poison("data_base64: is not base64") from error


def _envelope(attributes: Mapping[str, Any], data: bytes) -> Envelope:
    if attributes.get("specversion") != SPEC_VERSION:
        raise Poison(f"specversion: is not {SPEC_VERSION}")
    required = {name: _attribute(attributes, name) for name in ("id", "source", "type")}
    if missing := next((name for name, value in required.items() if value is None), None):
        raise Poison(f"{missing}: is missing; a CloudEvent requires it")
    subject, time = _attribute(attributes, "subject"), _attribute(attributes, "time")
    return Envelope(data, required["id"], required["source"], subject, time)


def _attribute(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= ATTRIBUTE_LIMIT:
        raise Poison(f"{name}: is not a string of 1 to {ATTRIBUTE_LIMIT} characters")
    try:
        return check_text(value)
    except JsonError as error:
        raise Poison(f"{name}: {error}") from error


def _decoded(value: str) -> str:
    """Return a header value with percent-encoding removed: headers carry non-ASCII text that way."""
    try:
        return unquote(value, errors="strict") if "%" in value else value
    except UnicodeDecodeError as error:
        raise Poison("a ce- header is not UTF-8") from error


def _require_json(media: str) -> None:
    kind = media.split(";", maxsplit=1)[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise Poison(f"the data is {kind[:64]}, not JSON")
