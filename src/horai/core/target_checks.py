"""The checks of a target: what can be called, which headers a request can carry, and which subjects a message can have."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from horai.core.calls import HttpTarget
from horai.text import Wrong

METHODS = ("POST", "PUT", "PATCH", "GET", "DELETE")
URL_LIMIT = 2_000
HEADERS_LIMIT = 8_000
LEAST_BATCH, MOST_BATCH = 2, 1_000
"""Attempts that one request may carry."""
SUBJECT = re.compile(r"[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)*")
"""A subject or a topic without wildcards, and not one of the server's own, which begin with `$`."""
SUBJECT_LIMIT = 255
SETTLE_ON = ("stored", "reported")
"""When an attempt succeeds: the stream has stored the message, or its consumer has reported so."""


def check_target(target: HttpTarget) -> None:
    """Raise ValueError, with what to write instead, for a target that cannot be called."""
    check_url(target.url)
    if target.method not in METHODS:
        raise ValueError(Wrong.METHOD(allowed=", ".join(METHODS)))
    check_headers(target.headers)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ValueError for a header that is reserved or that no request can carry. The error never contains values."""
    if sum(len(name) + len(value) for name, value in headers.items()) > HEADERS_LIMIT:
        raise ValueError(Wrong.HEADERS_TOO_LONG(most=HEADERS_LIMIT))
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(Wrong.HEADER_NAME(name=name))
        if is_reserved(name):
            raise ValueError(Wrong.HEADER_RESERVED(name=name))
        if not _FIELD_VALUE.fullmatch(value):
            raise ValueError(Wrong.HEADER_VALUE(name=name))


def is_header_value(value: str) -> bool:
    """Return whether a request header can carry the value."""
    return _FIELD_VALUE.fullmatch(value) is not None


@lru_cache(maxsize=10_000)
def check_url(url: str) -> None:
    """Raise ValueError for a URL that cannot be called. The error contains neither the user part nor the query."""
    if len(url) > URL_LIMIT:
        raise ValueError(Wrong.URL_TOO_LONG(most=URL_LIMIT))
    if not _URL_TEXT.fullmatch(url):
        raise ValueError(Wrong.URL_ASCII())
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(Wrong.URL_PORT()) from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError(Wrong.URL_SCHEME())
    if "@" in parts.netloc:
        raise ValueError(Wrong.URL_CREDENTIALS())
    if port == 0:
        raise ValueError(Wrong.URL_PORT_ZERO())
    if not _is_host(parts.hostname or ""):
        raise ValueError(Wrong.URL_HOST())


def _is_host(host: str) -> bool:
    """Return whether `host` is a name or a whole address.

    `127.1`, `2130706433` and `0x7f.1` are neither, although a resolver may accept them.
    """
    if ":" in host:
        return "%" not in host and _parses(IPv6Address, host)
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _parses(IPv4Address, host)
    return len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels)


def _parses(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def is_reserved(name: str) -> bool:
    """Return whether only Horai sets a header."""
    return name.lower() in _RESERVED or name.lower().startswith(("horai-", "webhook-", "proxy-"))


_OURS = {"content-type", "user-agent", "accept-encoding", "idempotency-key"}
_HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
_RESERVED = _OURS | _HOP_BY_HOP | {"host", "content-length", "content-encoding", "expect"}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e]*")
_URL_TEXT = re.compile(r"[\x21-\x5b\x5d-\x7e]+")  # without the backslash, which parsers disagree about
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
