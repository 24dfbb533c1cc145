"""Channels: their fields, the values that are never shown, and how those are kept.

Addresses of hooks are secrets themselves, since their path is a password; so are signing secrets and passwords of mail
servers. They are sealed with a data key of the tenant, and bound to the name of the channel and the host. Those of the
platform are sealed with a key of the tenant that serves requests without a key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from horai.core.callbacks import sign
from horai.core.encryption import Place
from horai.core.masking import HIDDEN
from horai.core.target_checks import check_url
from horai.core.validation import Validation
from horai.db.pool import AnyRead, AnyWrite
from horai.operations.keyring import Keyring
from horai.text import Hint, Wrong

FIELDS: Mapping[str, tuple[str, ...]] = {
    "webhook": ("url", "secret"),
    "slack": ("url",),
    "feishu": ("url", "secret"),
    "dingtalk": ("url", "secret"),
    "wecom": ("url",),
    "email": ("host", "port", "security", "username", "password", "from", "to"),
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    kind: ("host", "from", "to") if kind == "email" else ("url",) for kind in FIELDS
}
OF_KIND = tuple(dict.fromkeys(name for names in FIELDS.values() for name in names))
NEVER_SHOWN = ("url", "secret", "password")
SEALED, PLAIN, KEY_OF, MASKED = "sealed", "hidden", "keyOf", "masked"
PORTS = {"starttls": 587, "tls": 465, "none": 25}
MOST_RECEIVERS = 50


@dataclass(frozen=True, slots=True)
class ChannelWish:
    """A channel as it is to be stored: the fields that are shown, and those that are not."""

    kind: str
    language: str
    shown: Mapping[str, Any]
    hidden: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ChannelWish({self.kind!r}, {self.shown!r})"


def checked_channel(
    kind: str, language: str, given: Mapping[str, Any], stored: Mapping[str, Any] | None, *, is_platform: bool
) -> ChannelWish:
    """Return the channel of these fields. Raise `Invalid` with every fault.

    `stored` has the values of the channel before: `***` keeps one, if the host stays. A webhook of the platform has no
    tenant whose secret could sign, so it needs its own.
    """
    faults = Validation()
    fields = {name: value for name, value in given.items() if value is not None}
    for name in fields:
        if name not in FIELDS[kind]:
            faults.add(name, Wrong.NOT_OF_CHANNEL(kind=kind, fields=", ".join(FIELDS[kind])))
    for name in REQUIRED[kind]:
        if not fields.get(name):
            faults.add(name, Wrong.MISSING())
    faults.raise_if_any()
    fields = _kept(kind, fields, stored or {}, faults)
    faults.raise_if_any()
    _check_values(kind, fields, faults)
    if kind == "webhook" and is_platform and "secret" not in fields:
        faults.add("secret", Wrong.WEBHOOK_UNSIGNED())
    faults.raise_if_any()
    if kind == "email":
        security = fields.setdefault("security", "starttls")
        fields.setdefault("port", PORTS[security])
    hidden: dict[str, str] = {name: fields.pop(name) for name in NEVER_SHOWN if name in fields}
    if "url" in hidden:
        fields["host"] = urlsplit(hidden["url"]).netloc
    return ChannelWish(kind, language, fields, hidden)


def _kept(kind: str, fields: dict[str, Any], stored: Mapping[str, Any], faults: Validation) -> dict[str, Any]:
    """Put stored values in place of `***`, if their host stays the same."""
    if fields.get("url") == HIDDEN and "url" in stored:
        fields["url"] = stored["url"]
    if kind == "email":
        is_same_host = all(fields.get(name, stored.get(name)) == stored.get(name) for name in ("host", "port"))
    else:
        is_same_host = urlsplit(str(fields.get("url"))).netloc == urlsplit(str(stored.get("url"))).netloc
    for name in NEVER_SHOWN:
        if fields.get(name) == HIDDEN:
            if name in stored and is_same_host:
                fields[name] = stored[name]
            else:
                faults.add(name, Wrong.HIDDEN_VALUE(), Hint.GIVE_VALUE_AGAIN())
    return fields


def _check_values(kind: str, fields: Mapping[str, Any], faults: Validation) -> None:
    if "url" in fields:
        faults.reading("url", lambda: check_url(fields["url"]), None)
    if kind == "webhook" and "secret" in fields:
        try:
            sign(fields["secret"], "id", "0", b"")
        except ValueError:
            faults.add("secret", Wrong.NOT_A_SIGNING_SECRET())
    if kind == "email":
        faults.reading("host", lambda: _check_host(fields["host"]), None)
        addresses = [("from", fields["from"]), *(("to", each) for each in fields["to"])]
        for name, address in addresses:
            if not is_mail_address(address):
                faults.add(name, Wrong.NOT_A_MAIL_ADDRESS(value=address[:80]))
        if len(fields["to"]) > MOST_RECEIVERS:
            faults.add("to", Wrong.NOT_BETWEEN(low=1, high=MOST_RECEIVERS))
        if ("username" in fields) != ("password" in fields):
            faults.add("username", Wrong.WITH_PASSWORD())


def _check_host(host: str) -> None:
    """Raise ValueError unless `host` is the name or the address of a server, without a port."""
    check_url(f"http://{host}")
    if urlsplit(f"http://{host}").hostname != host.lower():
        raise ValueError(Wrong.URL_HOST())


def is_mail_address(text: str) -> bool:
    """Return whether a text is one mail address in ASCII, without a name or a line break."""
    user, at, host = text.rpartition("@")
    is_plain = text.isascii() and text.isprintable() and not any(letter in text for letter in ' ,;:<>"()[]\\')
    return bool(user and at and host) and is_plain and len(text) <= 254 and "@" not in user


def place_of(owner: int, name: str, shown: Mapping[str, Any]) -> Place:
    """Return the place of the hidden values of a channel."""
    return ("alert-channel", str(owner), name, f"{shown.get('host')}:{shown.get('port', '')}")


async def stored_config(
    connection: AnyWrite, keyring: Keyring, key_of: int, place: Place, wish: ChannelWish
) -> dict[str, Any]:
    """Return the document to store. Without an encryption key, hidden values are stored as they are."""
    config = {**wish.shown, MASKED: sorted(wish.hidden)}
    if not wish.hidden:
        return config
    if not keyring.is_on:
        return {**config, PLAIN: dict(wish.hidden)}
    text = json.dumps(wish.hidden)
    return {**config, KEY_OF: key_of, SEALED: await keyring.seal(connection, key_of, place, text)}


async def opened_config(
    connection: AnyRead, keyring: Keyring, owner: int, name: str, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a channel with its hidden values. Raises `KeyUnavailable` or `EnvelopeBroken`."""
    shown = _without_hidden(config)
    if (envelope := config.get(SEALED)) is None:
        return {**shown, **config.get(PLAIN, {})}
    text = await keyring.open(connection, config[KEY_OF], place_of(owner, name, shown), envelope)
    return {**shown, **json.loads(text)}


def shown_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a channel as responses and the audit log show them."""
    return {**_without_hidden(config), **dict.fromkeys(config.get(MASKED, ()), HIDDEN)}


def _without_hidden(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in {SEALED, PLAIN, KEY_OF, MASKED}}
