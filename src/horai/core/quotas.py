"""The quotas of a tenant: their fields and limits, and the errors of writes that exceed them.

The database decides (migrations 0031 and 0032): every path that adds instances, jobs or payloads passes the same
functions, and every claim takes permits. Here are the settings as the platform writes them, and the translation of the
database's refusals.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from horai.core.addresses import parse_networks
from horai.core.errors import FieldError, HoraiError, Invalid, RetryLimited, TooLarge
from horai.core.queue import MAX_CONCURRENCY
from horai.text import Hint, Refused, Wrong

MOST_NETWORKS = 64
MOST_WEIGHT = 1_000
BOUNDS: Mapping[str, tuple[int, int]] = {
    "jobs": (0, 10_000_000),
    "liveInstances": (0, 1_000_000_000),
    "enqueuePerSecond": (1, 1_000_000),
    "payloadBytes": (1, 1_048_576),
    "concurrency": (1, MAX_CONCURRENCY),
}
"""The smallest and the largest value of each quota that is a number."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of a tenant. None is no limit; `callback_networks` None allows the addresses of the operator."""

    jobs: int | None = None
    live_instances: int | None = None
    enqueue_per_second: int | None = None
    payload_bytes: int | None = None
    concurrency: int | None = None
    callback_networks: tuple[str, ...] | None = None

    @property
    def is_metered(self) -> bool:
        """Return whether new instances have to be charged to these quotas."""
        return (self.live_instances, self.enqueue_per_second, self.payload_bytes) != (None, None, None)

    def document(self) -> dict[str, Any]:
        """Return the quotas by their public names."""
        listed = None if self.callback_networks is None else list(self.callback_networks)
        return {public: getattr(self, name) for public, name in _NAMES.items()} | {"callbackNetworks": listed}


_NAMES = {
    "jobs": "jobs",
    "liveInstances": "live_instances",
    "enqueuePerSecond": "enqueue_per_second",
    "payloadBytes": "payload_bytes",
    "concurrency": "concurrency",
    "callbackNetworks": "callback_networks",
}
assert set(_NAMES.values()) == {each.name for each in fields(Quotas)}  # noqa: S101 — one public name for each field


def amended_quotas(known: Quotas, change: Mapping[str, Any]) -> Quotas:
    """Return the quotas with the fields of `change`; null removes a limit. Raise `Invalid` with every wrong field."""
    errors = list[FieldError]()
    document = known.document()
    for name, value in change.items():
        if value is not None and name in BOUNDS and not BOUNDS[name][0] <= value <= BOUNDS[name][1]:
            low, high = BOUNDS[name]
            errors.append(FieldError(f"quotas.{name}", Wrong.NOT_BETWEEN(low=low, high=high)))
        elif name == "callbackNetworks" and value is not None:
            document[name] = _networks(value, errors)
        else:
            document[name] = value
    if errors:
        raise Invalid.fields(errors)
    networks = document.pop("callbackNetworks")
    numbers = {_NAMES[name]: value for name, value in document.items()}
    return Quotas(**numbers, callback_networks=None if networks is None else tuple(networks))


def _networks(given: list[str], errors: list[FieldError]) -> list[str]:
    """Return the networks in their canonical text, each once; add those that cannot be read to `errors`."""
    known = list[str]()
    for number, text in enumerate(given):
        try:
            known.append(str(parse_networks([text])[0]))
        except ValueError:
            errors.append(FieldError(f"quotas.callbackNetworks.{number}", Wrong.NOT_A_NETWORK()))
    return list(dict.fromkeys(known))


def refusal_of(sqlstate: str | None, detail: str | None) -> HoraiError | None:
    """Return the error of a quota that the database reported, or None for any other error."""
    if sqlstate not in {"HR413", "HR422", "HR429"} or not detail:
        return None
    try:
        figures: dict[str, Any] = json.loads(detail)
        quota, most = str(figures["quota"]), int(figures["limit"])
    except (ValueError, KeyError, TypeError):
        return None
    now, asked = int(figures.get("now", 0)), int(figures.get("asked", 0))
    after = {"retryAfter": str(int(figures["retryAfter"]))} if "retryAfter" in figures else {}
    match quota:
        case "liveInstances":
            said = Refused.QUOTA_LIVE(now=now, most=most, asked=asked)
            return RetryLimited(said, Hint.WAIT_FOR_ENDS(), extra=after)
        case "enqueuePerSecond":
            return RetryLimited(Refused.QUOTA_RATE(most=most, asked=asked), Hint.WAIT_RETRY_AFTER(), extra=after)
        case "payloadBytes":
            return TooLarge(Refused.QUOTA_PAYLOAD(now=now, most=most), Hint.KEEP_OR_ASK())
        case "jobs":
            return Invalid(Refused.QUOTA_JOBS(now=now, most=most), Hint.DELETE_JOBS_OR_ASK())
        case _:
            return None


NEAR = 0.9
"""The share of the limit from which on a tenant is counted every second."""
SOON, SELDOM = timedelta(seconds=1), timedelta(seconds=10)
COST = 20
"""A count that took a second is not repeated for as many seconds."""


def next_count(counted: int, limit: int, took: timedelta) -> timedelta:
    """Return the time until the live instances of a tenant are counted again."""
    return max(SOON if counted >= limit * NEAR else SELDOM, took * COST)
