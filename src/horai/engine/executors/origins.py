"""The host of a target, as bulkheads, circuit breakers and retry budgets tell hosts apart."""

from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from horai.core.calls import HttpTarget, NatsTarget, Target

BROKER_HOST = "nats://"
"""The broker of a subject counts as a host. It is named, so this is not the address of a server."""


def host_of(target: Target) -> str:
    """Return the origin of an HTTP target, or the broker of a subject; an empty text for a function."""
    if isinstance(target, HttpTarget):
        return origin_of(target.url)
    return BROKER_HOST + target.broker if isinstance(target, NatsTarget) else ""


@lru_cache(maxsize=10_000)
def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL in lower case, without user or password; an empty text if it has none."""
    try:
        return str(URL(url, encoded=True).origin()).lower()
    except ValueError:
        return ""


class TargetAddress(NamedTuple):
    """The parts of a URL that a call needs. The path is sent as written: a signed query must not be quoted again."""

    url: URL
    origin: str
    authority: str
    host: str
    """The header `Host`."""
    path: str
    """The path and the query."""


@lru_cache(maxsize=10_000)
def address_of(url: str) -> TargetAddress:
    """Return the parts of a URL that `check_url` accepts."""
    parsed = URL(url, encoded=True)
    host = parsed.host_port_subcomponent or ""
    return TargetAddress(parsed, origin_of(url), parsed.raw_authority, host.rstrip("."), parsed.raw_path_qs)
