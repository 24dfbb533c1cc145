"""Queue: a queue that the code declares, the result of `app.queue`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal, TypedDict, cast, overload

from horai.core.errors import Invalid
from horai.core.queue import checked, checked_name


class QueueOptions(TypedDict, total=False):
    """The options of a queue. None stands for the default: no limit, and the priority normal.

    `max_concurrency` is the maximum number of calls at once over all nodes, `rate` the maximum number of starts ("100/s",
    "30/m", "1000/h"), `priority` that of jobs that state none. `title`, `description` and `owner` are labels for people.
    """

    max_concurrency: int | None
    rate: str | int | None
    priority: Literal["core", "high", "normal", "low"] | None
    title: str | None
    description: str | None
    owner: str | None


FIELDS = {"max_concurrency": "maxConcurrency"}
"""The fields of the document that have another name than their option."""
ELSEWHERE = {
    "paused": "An operator pauses a queue: `horai queues pause mail`.",
    "note": "An operator pauses a queue: `horai queues pause mail --note …`.",
    "rate_limit": 'Write rate="100/s".',
    "limit": "Write max_concurrency=5.",
}
"""Hints for options that a queue in code does not have."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue by its name. The option `queue` of jobs, workflows and calls takes the object or the name."""

    name: str
    document: Mapping[str, Any] = field(repr=False)


def queue_of(name: str, options: QueueOptions) -> Queue:
    """Return the declared queue. Raises `Invalid` with the queue and every wrong field, TypeError for an unknown option."""
    _refuse_unknown(options)
    if not isinstance(cast("object", name), str):
        raise Invalid(
            f"The name of a queue must be a string, not {type(name).__name__}.", 'Write app.queue("mail", …).'
        )
    document = {FIELDS.get(option, option): value for option, value in options.items() if value is not None}
    try:
        checked_name(name)
        checked(document)
    except Invalid as error:
        raise Invalid(f"The queue {name[:128]!r}: {error.detail}", error.hint, error.errors) from error
    return Queue(name, MappingProxyType({"name": name, **document}))


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    known = sorted(QueueOptions.__optional_keys__)
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, 1)
            hint = ELSEWHERE.get(option) or (f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}.")
            raise TypeError(f"app.queue has no option {option!r}. {hint}")


@overload
def queue_name(queue: str | Queue) -> str: ...
@overload
def queue_name(queue: str | Queue | None) -> str | None: ...
def queue_name(queue: str | Queue | None) -> str | None:
    """Return the name of a queue that is given as an option."""
    return queue.name if isinstance(queue, Queue) else queue
