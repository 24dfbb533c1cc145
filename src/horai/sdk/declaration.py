"""The declaration of a job: its document, made from the arguments of `@app.job` and validated at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, cast

from horai.core.errors import Invalid
from horai.core.job import checked
from horai.core.refresh import DEFAULT_LIMIT
from horai.core.timing import Timing
from horai.sdk.code_versions import ONLY, CodeVersion, code_version_of
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape, Signature, result_shape_of, signature_of
from horai.sdk.queues import Queue, queue_name
from horai.sdk.ray_resources import RayResources, Resources, ray_resources_of
from horai.time.durations import format_duration

Duration = float | str | timedelta
"""Seconds, text such as "10m", or a timedelta."""

AS_WRITTEN = (
    *("cron", "dialect", "every_from", "timezone", "overlap", "priority"),
    *("title", "description", "owner", "concurrency_per_key"),
)
DURATIONS = ("every", "jitter", "misfire_after", "timeout", "keep_history", "keep_dead_letters")
INSTANTS = ("anchor", "start_at", "end_at")
LISTS = ("tags", "search_paths")
ASSETS = ("produces", "when")
"""Options, grouped by how they become fields of the document."""
MOST_AT_ONCE = 4000
"""The largest `concurrency` of a job; a worker has the same limit."""


class NamedAsset(Protocol):
    """A handle of an asset, as `app.asset` returns it."""

    @property
    def name(self) -> str:
        """The name of the asset."""
        ...


AssetNames: TypeAlias = Sequence[str | NamedAsset]
"""Assets by name, or their handles."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The retry policy of a job: the number of retries and the delays between them. None stands for the default.

    `max_lost` limits the attempts that are lost because their worker died (default 20). They do not count as failures.
    """

    max: int = 5
    base: Duration | None = None
    cap: Duration | None = None
    jitter: Literal["additive", "full", "none"] | None = None
    max_lost: int | None = None


@dataclass(frozen=True, slots=True)
class Misfire:
    """The policy for slots that were not created in time. `all` creates only the newest `max_catchup` of them.

    Slots older than `window` are not created.
    """

    policy: Literal["skip", "once", "all"] = "once"
    max_catchup: int | None = None
    window: Duration | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """The refresh policy of a job with entities. An entity is due if its last run ended a `window` before the tick.

    The job loads `limit` entities at a time. With `run_on_add`, a new entity runs at once.
    """

    window: Duration
    limit: int = DEFAULT_LIMIT
    run_on_add: bool = False


class Options(TypedDict, total=False):
    """The options of a job. At most one of `cron` and `every`; the options from there to `payload` apply to these.

    `title`, `description` and `owner` are labels for people, in any script.
    """

    name: str
    title: str
    description: str
    owner: str
    cron: str
    every: Duration
    dialect: Literal["vixie", "quartz"]
    every_from: Literal["anchor", "finish"]
    anchor: datetime
    timezone: str
    dst: Mapping[str, str]
    calendar: Sequence[str] | str | Mapping[str, str]
    on_holiday: Literal["skip", "before", "after"]
    start_at: datetime
    end_at: datetime
    jitter: Duration
    misfire: Literal["skip", "once", "all"] | Misfire
    misfire_after: Duration
    overlap: Literal["allow", "skip", "queue", "replace"]
    produces: AssetNames
    when: AssetNames | Mapping[Literal["all", "any"], AssetNames]
    refresh: Refresh
    payload: object
    queue: str | Queue
    priority: Literal["core", "high", "normal", "low"]
    retry: Retry | int
    timeout: Duration
    tags: Sequence[str]
    isolation: Literal["process"]
    executor: Literal["ray"]
    resources: Resources
    concurrency: int
    concurrency_per_key: int
    encrypted: bool
    search_paths: Sequence[str]
    keep_history: Duration
    keep_dead_letters: Duration
    version: int
    continues: Sequence[int]


def payload_missing(job: str) -> Invalid:
    """Return the error for an instance without the payload that its function requires."""
    return Invalid.field(
        "payload", f"is missing, and the function of {job!r} requires one", "Pass it, or declare payload=… for the job."
    )


ELSEWHERE = {
    "max_concurrency": 'A queue limits how many run at once: mail = app.queue("mail", max_concurrency=5), and queue=mail.',
    "rate_limit": 'A queue limits how many start: mail = app.queue("mail", rate="10/s"), and queue=mail.',
    "rate": 'A queue limits how many start: mail = app.queue("mail", rate="10/s"), and queue=mail.',
    "max_retries": 'Write retry=5, or retry=Retry(max=5, base="1s").',
}
"""Hints for options of other libraries that Horai does not have."""


def refuse_unknown(where: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for the first option that does not exist, with the option that was probably meant."""
    known = Options.__optional_keys__
    for option in options:
        if option not in known:
            near = get_close_matches(option, sorted(known), 1)
            hint = ELSEWHERE.get(option) or (
                f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(known))}."
            )
            raise TypeError(f"{where} has no option {option!r}. {hint}")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A job as its code declares it. `payload` is JSON text; `result` is the shape of the function's result."""

    name: str
    document: Mapping[str, Any]
    timing: Timing
    payload: str | None
    signature: Signature
    result: Shape[Any]
    isolation: Literal["process"] | None
    concurrency: int | None = None
    """The number of calls that run at once in one worker process; None: as many as the job's share allows."""
    ray: RayResources | None = None
    """The resources of a function that runs on Ray; None for a function that the worker runs itself."""
    code: CodeVersion = ONLY
    """The version of a durable function."""

    @property
    def needs_payload(self) -> bool:
        """Return whether an instance of the job needs a payload: the function requires one, and the job has none."""
        return self.payload is None and self.signature.shape.is_required

    @property
    def is_encrypted(self) -> bool:
        """Return whether the values of the job are sealed."""
        return bool(self.document.get("encrypted"))

    @property
    def search_paths(self) -> tuple[str, ...]:
        """Return the fields of payloads that instances of an encrypted job are found by."""
        return tuple(self.document.get("searchPaths") or ())

    def encode(self, payload: object) -> str | None:
        """Return the payload of a new instance as JSON text; raise `Invalid` if it does not fit or is missing."""
        if payload is None and self.needs_payload:
            raise payload_missing(self.name)
        return self.signature.shape.encode(payload)


def declaration_of(function: Callable[..., Any], options: Options) -> Declaration:
    """Return the declaration of a function with its options. Raises `Invalid` with the job and every wrong field."""
    refuse_unknown("@app.job", options)
    name = options.get("name") or function.__name__
    try:
        signature = signature_of(function, name)
        document = _document(name, options, signature)
        timing = checked(document).timing
        payload = signature.shape.encode(options.get("payload"))
        concurrency = _concurrency(options)
        ray = ray_resources_of(options)
        code = code_version_of(options.get("version"), options.get("continues"), is_async=signature.is_async)
    except Invalid as error:
        detail = error.detail.removeprefix(f"{name}: ")
        raise Invalid(f"The job {name!r}: {detail}", error.hint, error.errors) from error
    except ValueError as error:
        raise Invalid(f"The job {name!r}: {error}.") from error
    result, isolation = result_shape_of(function), options.get("isolation")
    return Declaration(name, document, timing, payload, signature, result, isolation, concurrency, ray, code)


def _document(name: str, options: Options, signature: Signature) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name, "target": {"type": "worker", "handler": name}, **fields_of(options)}
    if signature.shape.schema is not None:
        document["payloadSchema"] = dict(signature.shape.schema)
    return document


def fields_of(options: Options) -> dict[str, Any]:
    """Return the fields of the document that the options set: all except the name, the target and the payload."""
    written: Mapping[str, Any] = {option: value for option, value in options.items() if value is not None}
    document = {_public(option): written[option] for option in AS_WRITTEN if option in written}
    if "queue" in written:
        document["queue"] = queue_name(written["queue"])
    document |= {_public(option): _duration(written[option]) for option in DURATIONS if option in written}
    document |= {_public(option): _instant(option, written[option]) for option in INSTANTS if option in written}
    document |= {_public(option): _list(option, written[option]) for option in LISTS if written.get(option)}
    document |= {option: _assets(option, written[option]) for option in ASSETS if option in written}
    document |= _calendar(written.get("calendar"), written.get("on_holiday"))
    if (dst := written.get("dst")) is not None:
        document["dst"] = _mapping("dst", dst, 'dst={"gap": "skip"}')
    if misfire := options.get("misfire"):
        document["misfire"] = _misfire(misfire) if isinstance(misfire, Misfire) else misfire
    if (refresh := written.get("refresh")) is not None:
        if not isinstance(refresh, Refresh):
            raise Invalid.field("refresh", f"must be a Refresh, not {type(refresh).__name__}", 'Refresh(window="10d").')
        document["refresh"] = {
            "window": _duration(refresh.window),
            "limit": refresh.limit,
            "runOnAdd": refresh.run_on_add,
        }
    if (encrypted := written.get("encrypted")) is not None:
        if not isinstance(encrypted, bool):
            raise Invalid.field("encrypted", f"must be a bool, not {type(encrypted).__name__}", "encrypted=True.")
        if encrypted:
            document["encrypted"] = True
    if (retry := written.get("retry")) is not None:
        document["retry"] = retry_fields(retry)
    return document


def _assets(option: str, given: object) -> list[str] | dict[str, Any]:
    if isinstance(given, Mapping):
        lists = cast("Mapping[str, AssetNames]", given)
        return {str(word): asset_names(f"{option}[{word!r}]", names) for word, names in lists.items()}
    return asset_names(option, cast("AssetNames", given))


def asset_names(option: str, given: AssetNames) -> list[str]:
    """Return the names of assets that are given by name or by handle."""
    if isinstance(given, str):
        raise Invalid.field(option, "must be a list, not a string", f"Write {option}=[{given!r}].")
    return [each if isinstance(each, str) else each.name for each in given]


def _calendar(given: object, on_holiday: str | None) -> dict[str, Any]:
    """Return the member `calendar`: excluded dates, or the name of a calendar with the treatment of its days off."""
    if isinstance(given, str) and any(letter.isalpha() for letter in given):
        given = {"name": given}
    if isinstance(given, Mapping):
        named = dict(cast("Mapping[str, Any]", given))
        return {"calendar": named if on_holiday is None else {**named, "onHoliday": on_holiday}}
    if on_holiday is not None:
        raise Invalid.field(
            "on_holiday", "is only accepted with a named calendar", 'Write calendar="cn-workdays", on_holiday="after".'
        )
    return {"calendar": _list("calendar", cast("Sequence[str]", given))} if given else {}


def _concurrency(options: Options) -> int | None:
    """Return the `concurrency` option. Raises `Invalid` if it is out of range or combined with isolation."""
    given: Any = options.get("concurrency")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_AT_ONCE:
        raise Invalid.field(
            "concurrency", f"is not a whole number from 1 to {MOST_AT_ONCE}", "Write, for example, concurrency=2."
        )
    if options.get("isolation") is not None:
        raise Invalid.field(
            "concurrency",
            "is not accepted together with isolation",
            "`horai worker --isolated` sets the number of processes.",
        )
    return given


def _mapping(option: str, value: object, example: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Invalid.field(option, f"must be a mapping, not {type(value).__name__}", f"Write {example}.")
    return dict(cast("Mapping[str, Any]", value))


def _public(option: str) -> str:
    """Return the name of an option in documents: start_at is startAt."""
    first, *others = option.split("_")
    return first + "".join(map(str.capitalize, others))


def _duration(value: Duration) -> str:
    return format_duration(seconds_of(value))


def _list(option: str, values: Sequence[str]) -> list[str]:
    if isinstance(values, str):
        raise Invalid.field(option, "must be a list, not a string", f"Write {option}=[{values!r}].")
    return list(values)


def _instant(option: str, value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Invalid.field(option, "must be a datetime with a UTC offset", "Write datetime(…, tzinfo=UTC).")
    return value.astimezone(UTC)


def _misfire(misfire: Misfire) -> dict[str, Any]:
    document: dict[str, Any] = {"policy": misfire.policy}
    if misfire.max_catchup is not None:
        document["maxCatchup"] = misfire.max_catchup
    if misfire.window is not None:
        document["window"] = _duration(misfire.window)
    return document


def retry_fields(retry: object) -> dict[str, Any]:
    """Return the document field of a retry policy. A whole number is the largest number of retries."""
    if isinstance(retry, int) and not isinstance(retry, bool):
        retry = Retry(max=retry)
    if not isinstance(retry, Retry):
        raise Invalid.field(
            "retry", f"must be a whole number or a Retry, not {type(retry).__name__}", "Write retry=5 or Retry(max=5)."
        )
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
