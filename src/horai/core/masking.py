"""Secrets that are stored and never shown: header values, query values of URLs, passwords of database URLs.

With an encryption key, the document holds only what responses show; the values are in an envelope, its member `sealed`.

Responses show them as `***`. A change that sends `***` back keeps the stored value, but only if the scheme, host and
port stay the same: otherwise a change of the address would send the secret to another receiver.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from horai.core.validation import Validation
from horai.text import Hint, Wrong

HIDDEN = "***"
SEALED = "sealed"


def shown_target(target: Mapping[str, Any]) -> dict[str, Any]:
    """Return a target or an HTTP source without the values of its headers and its query."""
    shown = {name: value for name, value in target.items() if name != SEALED}
    if isinstance(url := shown.get("url"), str):
        shown["url"] = shown_url(url)
    if isinstance(url := shown.get("databaseUrl"), str):
        shown["databaseUrl"] = shown_database_url(url)
    if headers := shown.get("headers"):
        shown["headers"] = {name: HIDDEN if isinstance(value, str) else value for name, value in headers.items()}
    return shown


def split_secrets(target: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a target or a source as responses show it, and the values that they hide."""
    shown = shown_target(target)
    secrets = {name: target[name] for name in ("url", "databaseUrl") if target.get(name) != shown.get(name)}
    headers: Mapping[str, Any] = target.get("headers") or {}
    if plain := {name: value for name, value in headers.items() if isinstance(value, str)}:
        secrets["headers"] = plain
    return shown, secrets


def joined_secrets(shown: Mapping[str, Any], secrets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target or source that was split into these two."""
    joined = {name: value for name, value in shown.items() if name != SEALED} | {
        name: value for name, value in secrets.items() if name != "headers"
    }
    if "headers" in secrets:
        joined["headers"] = {**(joined.get("headers") or {}), **secrets["headers"]}
    return joined


def origin_text(target: Mapping[str, Any]) -> str:
    """Return scheme, host and port of a target or source. They are the same before and after its secrets are hidden."""
    scheme, host, port = _origin(target.get("url") or target.get("databaseUrl")) or ("", None, None)
    return f"{scheme}://{host or ''}:{port or ''}"


def shown_url(url: str) -> str:
    """Return a URL with `***` for each value of its query. The rest is unchanged."""
    address, mark, query = url.partition("?")
    return address + mark + "&".join(_shown_part(part) for part in query.split("&")) if mark else url


def _shown_part(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals:
        return HIDDEN if part else part
    return f"{name}={HIDDEN}" if value else part


def shown_database_url(url: str) -> str:
    """Return a database URL without its password, in the user part or in the query."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    kept = [
        (key, HIDDEN if "pass" in key.lower() else value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    netloc = f"{name}{':' + HIDDEN if colon else ''}{at}{host}"
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(kept, safe="*/"), ""))


def revealed_target(given: Mapping[str, Any], stored: Mapping[str, Any] | None, field: str) -> dict[str, Any]:
    """Return `given` with the stored values in place of `***`. Raise `Invalid` if there is none to keep.

    `field` is the name of the target or source in the document.
    """
    faults = Validation()
    before = stored or {}
    target = dict(given)
    url = target.get("url")
    if isinstance(url, str):
        target["url"] = _revealed_url(url, before.get("url"), f"{field}.url", faults)
    is_same_place = _origin(target.get("url")) == _origin(before.get("url"))
    kept: Mapping[str, Any] = (before.get("headers") or {}) if is_same_place else {}
    known = {name.lower(): value for name, value in kept.items()}
    headers: Mapping[str, Any] = target.get("headers") or {}
    if headers:
        target["headers"] = {
            name: known.get(name.lower(), value) if value == HIDDEN else value for name, value in headers.items()
        }
        if HIDDEN in target["headers"].values():
            faults.add(f"{field}.headers", Wrong.HIDDEN_VALUE(), Hint.GIVE_VALUE_AGAIN())
    if isinstance(database := target.get("databaseUrl"), str):
        target["databaseUrl"] = _revealed_database(database, before.get("databaseUrl"), f"{field}.databaseUrl", faults)
    faults.raise_if_any()
    return target


def _revealed_url(url: str, stored: object, field: str, faults: Validation) -> str:
    if isinstance(stored, str) and url == shown_url(stored):
        return stored
    if any(part.rpartition("=")[2] == HIDDEN for part in url.partition("?")[2].split("&")):
        faults.add(field, Wrong.HIDDEN_VALUE(), Hint.GIVE_VALUE_AGAIN())
    return url


def _revealed_database(url: str, stored: object, field: str, faults: Validation) -> str:
    if isinstance(stored, str) and url == shown_database_url(stored):
        return stored
    if f":{HIDDEN}@" in url or f"={HIDDEN}" in url:
        faults.add(field, Wrong.HIDDEN_VALUE(), Hint.GIVE_VALUE_AGAIN())
    return url


def _origin(url: object) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        port = None if parts is None else parts.port
    except ValueError:
        return None
    if parts is None:
        return None
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)
