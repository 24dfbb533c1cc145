"""The decision about a `put` of a key, given what that key has now (seed 000).

A put changes the future intent and never undoes the past: a waiting instance is moved, a running one is left to finish
and replaced, a successful one is left alone. The caller holds the live row locked while it decides, so that the state
decided on is the state written.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from horai.core.errors import Invalid
from horai.core.jsontext import JsonError, check_text
from horai.core.limits import KEY_LIMIT
from horai.core.states import State
from horai.text import Wrong, told_by
from horai.text.phrase import Phrase


def check_key(key: str) -> str:
    """Return the key. Raise `Invalid` if it cannot be stored."""
    if not 0 < len(key) <= KEY_LIMIT:
        raise Invalid.field("key", Wrong.LENGTH(most=KEY_LIMIT))
    try:
        return check_text(key)
    except JsonError as error:
        told = told_by(error)
        raise Invalid.field("key", Phrase.of(told.removeprefix("a string "), told.code, told.params)) from error


class PutDecision(StrEnum):
    """The `decision` in the response to a put."""

    INSERTED = "INSERTED"
    UPDATED = "UPDATED"
    SUPERSEDED = "SUPERSEDED"
    IGNORED = "IGNORED"


class PayloadMissing(Exception):
    """A put would create an instance without the payload that its job requires."""


@dataclass(frozen=True, slots=True)
class PutOptions:
    """The options of a put: `version` orders events that may arrive out of order, `again` reruns after a success.

    `keep_steps`: the finished steps of an instance that is moved or replaced stay finished.
    """

    version: int | None = None
    again: bool = False
    keep_steps: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a key: whether it ever succeeded, and the highest version it accepted.

    `repeated`: the put asks for the same as the last instance had.
    """

    succeeded: bool = False
    version: int | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The version, the time and the payload (JSON text) that a put asks for, or that an instance has."""

    version: int | None
    at: datetime
    payload: str | None


def is_repeat(asked: Plan, known: Plan) -> bool:
    """Return whether a put asks for what exists: an equal version, time and payload.

    A put without a payload matches every payload.
    """
    is_equal = asked.version is not None and (asked.version, asked.at) == (known.version, known.at)
    return is_equal and asked.payload in (None, known.payload)


def is_outdated(intent: PutOptions, accepted: int | None) -> bool:
    """Return whether a put has a lower version than the last accepted one.

    An equal version is not outdated: it may bring another time or payload.
    """
    return intent.version is not None and accepted is not None and intent.version < accepted


def decide_live(state: State, accepted: int | None, intent: PutOptions, *, repeats: bool = False) -> PutDecision:
    """Decide about a key whose live instance is in `state` and has accepted version `accepted`."""
    if repeats or is_outdated(intent, accepted):
        return PutDecision.IGNORED
    match state:
        case State.INIT | State.FAIL | State.BLOCKED:
            return PutDecision.UPDATED
        case State.RUNNING:
            return PutDecision.SUPERSEDED
        case State.SUCCESS | State.DEAD | State.CANCELLED:
            raise ValueError(f"{state.name} is final: no live instance is in it")


def decide_past(past: Past, intent: PutOptions) -> PutDecision:
    """Decide about a key without a live instance.

    CANCELLED, DEAD and unknown keys accept a new intent, unless it is repeated.
    """
    if is_outdated(intent, past.version):
        return PutDecision.IGNORED
    if (past.succeeded or past.repeated) and not intent.again:
        return PutDecision.IGNORED
    return PutDecision.INSERTED
