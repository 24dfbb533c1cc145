"""The options of one call, apart from the arguments of the function: `charge.options(delay="5m").enqueue(order, 100)`.

A keyword of `options` is always an option of Horai; an argument of a method of its answer is always an argument of the
function. So no option collides with a parameter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypedDict, TypeVar

from horai.core.call_settings import CallSettings, call_settings
from horai.core.call_windows import CallWindow, call_window
from horai.core.concurrency_keys import check_concurrency_key
from horai.core.errors import Invalid
from horai.core.put import PutOptions
from horai.sdk.declaration import Declaration, Duration
from horai.sdk.handle import Handle, Handles
from horai.sdk.outcomes import seconds_of
from horai.sdk.parameters import Arguments, ArgumentsShape
from horai.sdk.queues import Queue, queue_name

P = ParamSpec("P")
R = TypeVar("R")


ConcurrencyKey = str | Callable[[Any], str]
"""A key, or a function that returns the key of a payload."""


class CallOptions(TypedDict, total=False):
    """The options of one call. None stands for the default of an option."""

    at: datetime | None
    delay: Duration | None
    idempotency_key: str | None
    version: int | None
    again: bool
    keep_steps: bool
    unique: bool | Duration | None
    debounce: Duration | None
    concurrency_key: ConcurrencyKey | None
    queue: str | Queue | None
    priority: Literal["core", "high", "normal", "low"] | None
    expires: Duration | datetime | None
    conn: Any
    key: str | None


_SETTINGS = frozenset({"concurrency_key", "queue", "priority", "expires"})
ENQUEUE = frozenset({"at", "delay", "idempotency_key", "unique", "debounce", "conn"}) | _SETTINGS
ENQUEUE_MANY = frozenset({"at", "delay", "unique", "debounce", "conn"}) | _SETTINGS
PUT = frozenset({"at", "delay", "version", "again", "keep_steps", "conn"}) | _SETTINGS
TRIGGER = frozenset({"idempotency_key", "unique"}) | _SETTINGS
CALL = frozenset({"key"})
"""The options that each method accepts."""
BESIDE_PAYLOAD = frozenset({"at", "delay", "idempotency_key", "conn"})
BESIDE_TRIGGER = frozenset({"idempotency_key"})
"""The options that `enqueue` and `trigger` also accept beside the payload. Another one here would take a name away from the
parameters of functions."""


def refuse_unknown_options(options: Mapping[str, Any]) -> None:
    """Raise TypeError for the first option that does not exist, with the option that was probably meant."""
    known = sorted(CallOptions.__optional_keys__)
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
            raise TypeError(f"job.options has no option {option!r}. {hint}")


def accepted(options: CallOptions, known: frozenset[str], verb: str) -> CallOptions:
    """Return the options. Raises `Invalid` for one that the method `verb` does not have."""
    for option, value in options.items():
        if option not in known and value is not None and value is not False:
            raise Invalid.field(option, f"is not an option of {verb}", f"It accepts {', '.join(sorted(known))}.")
    return options


def when_of(options: CallOptions) -> datetime | timedelta | None:
    """Return the time or the delay of an instance; None for now. A delay counts from now by the database's clock."""
    at, delay = options.get("at"), options.get("delay")
    if at is not None and delay is not None:
        raise Invalid.field("delay", "cannot be combined with at", "Pass only one of them.")
    if at is not None:
        return with_offset("at", at)
    return None if delay is None else seconds_of(delay)


def with_offset(name: str, instant: datetime) -> datetime:
    """Return the time. Raises `Invalid` for one without a UTC offset."""
    if instant.tzinfo is None:
        raise Invalid.field(name, "has no UTC offset", "Write datetime(…, tzinfo=UTC), or datetime.now(UTC) + ….")
    return instant


def window_of(options: CallOptions) -> CallWindow | None:
    """Return the window of a call; None without `unique` and `debounce`. Raises `Invalid` for options that contradict it."""
    window = call_window(options.get("unique"), options.get("debounce"))
    if window is None:
        return None
    for option in ("at", "delay", "idempotency_key") if window.sets_time else ("idempotency_key",):
        if options.get(option) is not None:
            raise Invalid.field(option, f"cannot be combined with {window.option}")
    return window


def settings_of(options: CallOptions, payload: object) -> CallSettings:
    """Return the settings of a call with this payload. Raises `Invalid` for one that cannot be stored."""
    key = _key_of(options, payload)
    return call_settings(key, queue_name(options.get("queue")), options.get("priority"), options.get("expires"))


def settings_of_all(options: CallOptions, payloads: Sequence[object]) -> list[CallSettings] | None:
    """Return the settings of calls with these payloads; None without any."""
    own = settings_of({**options, "concurrency_key": None}, None)
    given = options.get("concurrency_key")
    if given is None:
        return None if own.is_empty else [own] * len(payloads)
    if not callable(given):
        return [replace(own, concurrency_key=_checked_key(given))] * len(payloads)
    keys = [_checked_key(given(payload)) for payload in payloads]
    return [CallSettings(key, own.queue, own.priority, own.expiry) for key in keys]


def _key_of(options: CallOptions, payload: object) -> str | None:
    given = options.get("concurrency_key")
    if given is None:
        return None
    return _checked_key(given(payload) if callable(given) else given)


def _checked_key(key: Any) -> str | None:
    if key is None:
        raise Invalid.field("concurrency_key", "is None for one of the payloads", "Return a string for every payload.")
    if not isinstance(key, str):
        raise Invalid.field(
            "concurrency_key", f"must be a string, not {type(key).__name__}", "Pass str(…) of an id, or an f-string."
        )
    return check_concurrency_key(key, "concurrency_key")


def put_options_of(options: CallOptions) -> PutOptions:
    """Return the options of a put."""
    return PutOptions(options.get("version"), options.get("again", False), options.get("keep_steps", False))


def payload_of_call(declaration: Declaration, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
    """Return the payload of a call of the job's function; None for a call without arguments: the job's own payload."""
    if not arguments and not named:
        return None
    shape = declaration.signature.shape
    if len(arguments) == 1 and not named and (not isinstance(shape, ArgumentsShape) or _is_bound(arguments[0])):
        return arguments[0]
    if isinstance(shape, ArgumentsShape):
        return shape.bind(arguments, named)
    own = _parameter_name(declaration)
    if arguments or set(named) != {own}:
        taken = f"one payload, as {own!r}" if declaration.signature.parameters else "one payload"
        raise TypeError(f"{declaration.name} takes {taken}; {_given(arguments, named)} were given")
    return named[own]


def split_call(
    declaration: Declaration, arguments: Sequence[Any], named: Mapping[str, Any], known: frozenset[str]
) -> tuple[object, CallOptions]:
    """Return the payload and the options of a call without `options`.

    Keywords belong to a function with several parameters. For any other function they are options, except the name of
    its parameter.
    """
    if not named or isinstance(declaration.signature.shape, ArgumentsShape):
        return payload_of_call(declaration, arguments, named), {}
    own = _parameter_name(declaration)
    if own in named and own in known and not arguments:
        raise Invalid.field(
            own,
            f"is a parameter of {declaration.name!r} and an option of Horai",
            f"Pass the argument by position, or write {declaration.name}.options({own}=…) for the option.",
        )
    options: Any = {name: value for name, value in named.items() if name in known}
    rest = {name: value for name, value in named.items() if name not in known}
    if "payload" in rest and own != "payload" and not arguments:
        rest[own] = rest.pop("payload")
    return payload_of_call(declaration, arguments, rest), options


def _is_bound(argument: object) -> bool:
    return isinstance(argument, Arguments)


def _parameter_name(declaration: Declaration) -> str:
    parameters = declaration.signature.parameters
    return parameters[0].name if parameters else "payload"


def _given(arguments: Sequence[Any], named: Mapping[str, Any]) -> str:
    return ", ".join([*(["…"] * len(arguments)), *(f"{name}=" for name in named)])


class Adder(Protocol[R]):
    """A job, as its callers see it: it adds instances with a payload and options."""

    @property
    def declaration(self) -> Declaration:
        """The declaration of the job."""
        ...

    async def add(self, payload: object, options: CallOptions) -> Handle[R]:
        """Add an instance."""
        ...

    async def add_many(self, payloads: Iterable[object], options: CallOptions) -> Handles[R]:
        """Add one instance per payload."""
        ...

    async def put_key(self, key: str, payload: object, options: CallOptions) -> Handle[R]:
        """Create or reschedule the instance of a key."""
        ...

    async def run_now(self, payload: object, options: CallOptions) -> Handle[R]:
        """Run the job now."""
        ...

    async def call_child(self, payload: object, key: str | None) -> R:
        """Call the job in a durable function."""
        ...


class JobCaller(Generic[P, R]):
    """A job with the options of its next calls. The arguments of its methods are those of the function."""

    def __init__(self, job: Adder[R], options: CallOptions) -> None:
        self._job = job
        self._options = options

    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> Handle[R]:
        """Add an instance with these arguments."""
        accepted(self._options, ENQUEUE, "enqueue")
        return await self._job.add(payload_of_call(self._job.declaration, arguments, named), self._options)

    async def enqueue_many(self, payloads: Iterable[object]) -> Handles[R]:
        """Add one instance per item: all of them or none. `job.arguments(…)` makes an item."""
        return await self._job.add_many(payloads, accepted(self._options, ENQUEUE_MANY, "enqueue_many"))

    async def put(self, key: str, /, *arguments: P.args, **named: P.kwargs) -> Handle[R]:
        """Create or reschedule the instance of a business key, with these arguments."""
        accepted(self._options, PUT, "put")
        return await self._job.put_key(key, payload_of_call(self._job.declaration, arguments, named), self._options)

    async def trigger(self, *arguments: P.args, **named: P.kwargs) -> Handle[R]:
        """Run the job now with these arguments."""
        accepted(self._options, TRIGGER, "trigger")
        return await self._job.run_now(payload_of_call(self._job.declaration, arguments, named), self._options)

    async def call(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the job with these arguments in a durable function. `key` tells calls of it apart that run at once."""
        accepted(self._options, CALL, "call")
        return await self._job.call_child(
            payload_of_call(self._job.declaration, arguments, named), self._options.get("key")
        )
