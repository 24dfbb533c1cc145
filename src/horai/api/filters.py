"""Filters of queries and bodies, translated for the store."""

from dataclasses import dataclass, replace
from datetime import datetime

from horai.core.errors import Invalid
from horai.core.search_paths import DEEPEST, names_in
from horai.core.states import State, filter_words, states_named
from horai.db import nodes
from horai.db.instance_lists import InstanceFilter, PayloadField
from horai.operations.scope import Scope, require_job
from horai.operations.search import instances_with
from horai.text import Hint, Wrong
from horai.wire.instances import Narrowed


def states_of(words: str) -> frozenset[State]:
    """Return the states of a comma-separated list. Raises `Invalid` for a word that names no state."""
    states: set[State] = set()
    for word in words.split(","):
        named = states_named(word.strip())
        if named is None:
            raise Invalid.field("state", Wrong.NO_STATE(word=word[:60]), Hint.KNOWN(words=", ".join(filter_words())))
        states |= named
    return frozenset(states)


@dataclass(frozen=True, slots=True)
class FilterValues:
    """The values of a request that are not fields of its filter."""

    states: frozenset[State]
    job: str | None = None
    ids: tuple[int, ...] | None = None


async def instances_meant(scope: Scope, asked: Narrowed, meant: FilterValues) -> InstanceFilter:
    """Return the filter for the instances that a request means. Raises `NotFound` if its job does not exist."""
    async with scope.read() as connection:
        job = None if meant.job is None else await require_job(connection, scope, meant.job)
        now = None if asked.when is None else await nodes.database_time(connection)
    payload = None if asked.payload is None else payload_field(asked.payload)
    ids = meant.ids
    if job is not None and job.is_encrypted and payload is not None:
        found = await instances_with(scope, job, payload)
        ids, payload = found if ids is None else tuple(set(ids).intersection(found)), None
    only = InstanceFilter(
        states=meant.states,
        job_id=None if job is None else job.id,
        key=asked.key,
        from_time=asked.from_,
        to_time=asked.to,
        queue=asked.queue,
        tag=asked.tag,
        error_code=asked.error_code,
        key_prefix=asked.key_prefix,
        payload=payload,
        ids=ids,
    )
    return only if now is None else _parted(only, now, is_planned=asked.when == "planned")


def _parted(only: InstanceFilter, now: datetime, *, is_planned: bool) -> InstanceFilter:
    if is_planned:
        return replace(only, from_time=now if only.from_time is None else max(only.from_time, now))
    return replace(only, to_time=now if only.to_time is None else min(only.to_time, now))


def payload_field(written: str) -> PayloadField:
    """Parse a payload filter such as `order.id=17`. Raises `Invalid` if it names no member."""
    path, sign, value = written.partition("=")
    names = names_in(path)
    if not sign or names is None:
        raise Invalid.field(
            "payload",
            Wrong.NO_MEMBER(text=written[:60]),
            Hint.WRITE_MEMBER(most=DEEPEST),
        )
    return PayloadField(names, value.strip())
