"""What the arguments of `@app.job` come to: the job's document, checked at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

from horai.core.definition import checked
from horai.core.durations import format_duration
from horai.core.errors import Invalid
from horai.core.refresh import DEFAULT_LIMIT
from horai.core.timing import Timing
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape, Signature, result_shape_of, signature_of

Duration = float | str | timedelta
"""Seconds, text such as "10m", or a timedelta."""

AS_WRITTEN = ("cron", "dialect", "every_from", "timezone", "overlap", "queue", "priority")
DURATIONS = ("every", "jitter", "misfire_after", "timeout")
INSTANTS = ("anchor", "start_at", "end_at")
LISTS = ("calendar", "tags")
"""Options by how they become fields of the document."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a failing instance is tried again; what is not said is the default.

    `max_lost` limits the attempts that are lost because their worker died (20). They do not count as failures.
    """

    max: int = 5
    base: Duration | None = None
    cap: Duration | None = None
    jitter: Literal["additive", "full", "none"] | None = None
    max_lost: int | None = None


@dataclass(frozen=True, slots=True)
class Misfire:
    """What becomes of slots that nobody made in time: of `all` of them only the newest `max_catchup`.

    None from further back than `window`.
    """

    policy: Literal["skip", "once", "all"] = "once"
    max_catchup: int | None = None
    window: Duration | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A job with entities: each runs again when its last run ended a `window` before the job's tick.

    `limit` of them are loaded at a time; with `run_on_add` a new one runs at once.
    """

    window: Duration
    limit: int = DEFAULT_LIMIT
    run_on_add: bool = False


class Options(TypedDict, total=False):
    """What a job may say of itself. At most one of cron and every; what stands between them and payload is about these."""

    name: str
    cron: str
    every: Duration
    dialect: Literal["vixie", "quartz"]
    every_from: Literal["anchor", "finish"]
    anchor: datetime
    timezone: str
    dst: Mapping[str, str]
    calendar: Sequence[str]
    start_at: datetime
    end_at: datetime
    jitter: Duration
    misfire: Literal["skip", "once", "all"] | Misfire
    misfire_after: Duration
    overlap: Literal["allow", "skip", "queue", "replace"]
    refresh: Refresh
    payload: object
    queue: str
    priority: Literal["core", "high", "normal", "low"]
    retry: Retry
    timeout: Duration
    tags: Sequence[str]
    isolation: Literal["process"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A job as its code declares it. `payload` is JSON text; `result` is the shape of what the function returns."""

    name: str
    document: Mapping[str, Any]
    timing: Timing
    payload: str | None
    signature: Signature
    result: Shape[Any]
    isolation: Literal["process"] | None


def declaration_of(function: Callable[..., Any], options: Options) -> Declaration:
    """What a function and its options declare; `Invalid` names the job and every wrong field."""
    name = options.get("name") or function.__name__
    try:
        signature = signature_of(function)
        document = _document(name, options, signature)
        timing = checked(document).timing
        payload = signature.shape.encode(options.get("payload"))
    except Invalid as error:
        raise Invalid(f"The job {name!r}: {error.detail}", error.hint, error.errors) from error
    except ValueError as error:
        raise Invalid(f"The job {name!r}: {error}.") from error
    return Declaration(name, document, timing, payload, signature, result_shape_of(function), options.get("isolation"))


def _document(name: str, options: Options, signature: Signature) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name, "target": {"type": "worker", "handler": name}, **fields_of(options)}
    if signature.shape.schema is not None:
        document["payloadSchema"] = dict(signature.shape.schema)
    return document


def fields_of(options: Options) -> dict[str, Any]:
    """The fields of a document that options come to: all but the name, the target and the payload."""
    written: Mapping[str, Any] = {option: value for option, value in options.items() if value is not None}
    document = {_public(option): written[option] for option in AS_WRITTEN if option in written}
    document |= {_public(option): _duration(written[option]) for option in DURATIONS if option in written}
    document |= {_public(option): _instant(option, written[option]) for option in INSTANTS if option in written}
    document |= {option: _list(option, written[option]) for option in LISTS if written.get(option)}
    if dst := options.get("dst"):
        document["dst"] = dict(dst)
    if misfire := options.get("misfire"):
        document["misfire"] = _misfire(misfire) if isinstance(misfire, Misfire) else misfire
    if refresh := options.get("refresh"):
        document["refresh"] = {
            "window": _duration(refresh.window),
            "limit": refresh.limit,
            "runOnAdd": refresh.run_on_add,
        }
    if retry := options.get("retry"):
        document["retry"] = _retry(retry)
    return document


def _public(option: str) -> str:
    """What an option is called in documents: start_at is startAt."""
    first, *others = option.split("_")
    return first + "".join(map(str.capitalize, others))


def _duration(value: Duration) -> str:
    return format_duration(seconds_of(value))


def _list(option: str, values: Sequence[str]) -> list[str]:
    if isinstance(values, str):
        raise Invalid.field(option, "is one text", f"Write a list of them: {option}=[{values!r}].")
    return list(values)


def _instant(option: str, value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Invalid.field(option, "is no datetime with a UTC offset", "Write datetime(…, tzinfo=UTC).")
    return value.astimezone(UTC)


def _misfire(misfire: Misfire) -> dict[str, Any]:
    document: dict[str, Any] = {"policy": misfire.policy}
    if misfire.max_catchup is not None:
        document["maxCatchup"] = misfire.max_catchup
    if misfire.window is not None:
        document["window"] = _duration(misfire.window)
    return document


def _retry(retry: Retry) -> dict[str, Any]:
    document: dict[str, Any] = {"maxRetry": retry.max}
    if retry.base is not None:
        document["base"] = _duration(retry.base)
    if retry.cap is not None:
        document["cap"] = _duration(retry.cap)
    if retry.jitter is not None:
        document["jitter"] = retry.jitter
    if retry.max_lost is not None:
        document["maxLost"] = retry.max_lost
    return document
