"""Settings of a node that starts a run of another workflow, and the payload that the run gets. All functions are pure.

A parameter of the run is a literal, a member of the payload of the parent run, or the result of a node before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from horai.core.limits import RESULT_LIMIT
from horai.core.validation import Validation
from horai.text import Hint, Wrong

DEPTH_LIMIT = 8
"""The most levels of runs: a run that was triggered is the first, the run that a node of it starts is the second."""
PARAMS_LIMIT = 100
MEMBER_LIMIT = 200
SOURCES = ("value", "payload", "resultOf")
_Members = dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """A valid sub-workflow. Without `params` the run gets the payload that every node gets.

    `params` are documents by the name of the parameter, each with one of `SOURCES`.
    """

    params: Mapping[str, Mapping[str, Any]] | None = field(default=None, hash=False)

    @property
    def results_of(self) -> tuple[str, ...]:
        """Return the nodes whose results the run gets: they are before this node."""
        found = [str(source["resultOf"]) for source in (self.params or {}).values() if "resultOf" in source]
        return tuple(dict.fromkeys(found))

    @property
    def document(self) -> dict[str, Any]:
        """Return the settings as they are stored."""
        return {} if self.params is None else {"params": {name: dict(source) for name, source in self.params.items()}}


def stored_child(text: str | None) -> ChildSettings | None:
    """Return settings that were stored as JSON text."""
    return None if text is None else ChildSettings(msgspec.json.decode(text).get("params"))


def read_params(given: Mapping[str, Any] | None, faults: Validation, place: str) -> ChildSettings:
    """Return the settings of a document; add every fault to `faults`."""
    if given is None:
        return ChildSettings()
    if len(given) > PARAMS_LIMIT:
        faults.add(place, Wrong.TOO_MANY_PARAMS(most=PARAMS_LIMIT))
    for name, source in given.items():
        if len(name) > MEMBER_LIMIT:
            faults.add(place, Wrong.TOO_LONG(most=MEMBER_LIMIT))
        _check_source(source, faults, f"{place}.{name[:40]}")
    return ChildSettings({name: _source(source) for name, source in given.items()})


def _source(given: object) -> dict[str, Any]:
    return {**cast("Mapping[str, Any]", given)} if isinstance(given, Mapping) else {}


def _check_source(given: object, faults: Validation, place: str) -> None:
    source = _source(given)
    if len(source) != 1 or not {*source} <= {*SOURCES}:
        faults.add(place, Wrong.PARAM_SOURCE(), Hint.WRITE_PARAM())
        return
    for kind in ("payload", "resultOf"):
        if kind in source and not isinstance(source[kind], str):
            faults.add(place, Wrong.PARAM_SOURCE(), Hint.WRITE_PARAM())
        elif kind in source and len(str(source[kind])) > MEMBER_LIMIT:
            faults.add(place, Wrong.TOO_LONG(most=MEMBER_LIMIT))


def child_payload(settings: ChildSettings, payload: str | None) -> str | None:
    """Return the payload of the run, as far as it is known when the parent run starts; None for that of the parent run.

    A member that the payload of the parent run does not have is left out, so that the default of the parameter counts.
    """
    if settings.params is None:
        return None
    members, found = members_of(payload), _Members()
    for name, source in settings.params.items():
        if "value" in source:
            found[name] = msgspec.Raw(msgspec.json.encode(source["value"]))
        elif str(source.get("payload")) in members:
            found[name] = members[str(source["payload"])]
    return msgspec.json.encode(found).decode()


def with_child_results(settings: ChildSettings, payload: str | None, results: Mapping[str, str | None]) -> str | None:
    """Return the payload of the run with the results that it takes, by the names of their nodes.

    A node without a result leaves its parameter out, and so do results that exceed 64 kB together.
    """
    taken = {name: results.get(str(source.get("resultOf"))) for name, source in (settings.params or {}).items()}
    given = {name: text for name, text in taken.items() if text is not None}
    if not given or sum(len(text.encode()) for text in given.values()) > RESULT_LIMIT:
        return payload
    raw = {name: msgspec.Raw(text.encode()) for name, text in given.items()}
    return msgspec.json.encode({**members_of(payload), **raw}).decode()


def members_of(payload: str | None) -> dict[str, msgspec.Raw]:
    """Return the members of a payload, not parsed; none if it is not an object."""
    try:
        return {} if payload is None else msgspec.json.decode(payload, type=_Members)
    except msgspec.DecodeError:
        return {}
