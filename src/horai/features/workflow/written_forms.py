"""Compositions as JSON: read a form, and find every fault in it by its path. All functions are pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from horai.core.payload_text import payload_text
from horai.core.validation import Validation
from horai.features.workflow.composed import TakenResults, template_of
from horai.features.workflow.forms import ChainForm, Form, FormEnds, GroupForm
from horai.text import Wrong

PARTS = ("chain", "group", "map", "chord")
_Payload = msgspec.Raw | UnsetType


class _WrittenItems(msgspec.Struct, forbid_unknown_fields=True):
    job: str
    payloads: list[msgspec.Raw]


class _WrittenPart(msgspec.Struct):
    job: str | None = None
    payload: _Payload = UNSET
    takes: Any = None
    chain: "list[_WrittenPart] | None" = None
    group: "list[_WrittenPart] | None" = None
    map: _WrittenItems | None = None
    chord: "_WrittenChord | None" = None


class _WrittenChord(msgspec.Struct):
    group: list[_WrittenPart]
    then: _WrittenPart


@dataclass(slots=True)
class WrittenCall:
    """A call as it was written. The paths name its job and its payload in errors.

    `own` is the payload of its job, once that was read.
    """

    job_path: str
    payload_path: str
    job_name: str
    given: str | None
    takes: bool | str
    own: str | None = field(default=None)

    @property
    def takes_result(self) -> bool:
        """Return whether the call takes the results before it."""
        return self.takes is not False

    @property
    def payload(self) -> str:
        """Return the payload as JSON text."""
        return self.given or self.own or "null"

    def template(self, before: FormEnds) -> str:
        """Return the payload that waits for the results before the call."""
        name = self.takes if isinstance(self.takes, str) else None
        others = self.given or self.own if name is not None else None
        return template_of(TakenResults(list(before.nodes), before.is_list, name), others)

    def members(self) -> dict[str, Any] | None:
        """Return the members of the payload that the result is added to; None if it is not an object."""
        value: Any = msgspec.json.decode(self.given or self.own or "{}")
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_form(text: bytes) -> Form:
    """Return the form of a composition whose shape was checked. Raises `Invalid` with every fault, and `TooLarge`."""
    faults = Validation()
    form = _one_of(msgspec.json.decode(text, type=_WrittenPart), "", faults, has_before=False)
    faults.raise_if_any()
    assert form is not None  # noqa: S101 — there is a fault otherwise
    return form


def calls_in(form: Form) -> Iterator[WrittenCall]:
    """Return the calls of a form, in order."""
    if isinstance(form, WrittenCall):
        yield form
    elif isinstance(form, ChainForm | GroupForm):
        for part in form.parts:
            yield from calls_in(part)


def _at(path: str, member: str | int) -> str:
    return f"{path}.{member}" if path else str(member)


def _part(part: _WrittenPart, path: str, faults: Validation, *, has_before: bool) -> Form | None:
    if part.job is None:
        return _one_of(part, path, faults, has_before=has_before)
    for name in PARTS:
        if getattr(part, name) is not None:
            faults.add(_at(path, name), Wrong.NOT_WITH_PART(name="job"))
    given = None if part.payload is UNSET else payload_text(part.payload, _at(path, "payload"))
    takes = False if part.takes is None or part.takes is False else part.takes
    call = WrittenCall(_at(path, "job"), _at(path, "payload"), part.job, given, takes)
    if takes is not True and takes is not False and (not isinstance(takes, str) or not takes):
        faults.add(_at(path, "takes"), Wrong.TAKES_SHAPE())
    elif call.takes_result and not has_before:
        faults.add(_at(path, "takes"), Wrong.TAKES_NOTHING())
    elif takes is True and given is not None:
        faults.add(_at(path, "payload"), Wrong.TAKES_AS_PAYLOAD())
    return call


def _one_of(part: _WrittenPart, path: str, faults: Validation, *, has_before: bool) -> Form | None:
    """Return the chain, the group, the map or the chord that a part is."""
    given = [name for name in PARTS if getattr(part, name) is not None]
    if len(given) != 1:
        names = PARTS if not path else ("job", *PARTS)
        faults.add(path or "body", Wrong.NOT_ONE_PART(names=", ".join(names)))
        return None
    for name in ("payload", "takes"):
        if path and getattr(part, name) not in (UNSET, None):
            faults.add(_at(path, name), Wrong.NOT_WITH_PART(name=given[0]))
    if part.chain is not None:
        return _chain(part.chain, _at(path, "chain"), faults, has_before=has_before)
    if part.group is not None:
        return _group(part.group, _at(path, "group"), faults, has_before=has_before)
    if part.map is not None:
        return _map(part.map, _at(path, "map"), faults)
    assert part.chord is not None  # noqa: S101 — exactly one is given
    chord, below = part.chord, _at(path, "chord")
    group = _group(chord.group, _at(below, "group"), faults, has_before=has_before)
    then = _part(chord.then, _at(below, "then"), faults, has_before=True)
    return ChainForm([each for each in (group, then) if each is not None])


def _chain(parts: Sequence[_WrittenPart], path: str, faults: Validation, *, has_before: bool) -> Form:
    read = list[Form]()
    if not parts:
        faults.add(path, Wrong.NO_CALLS())
    for number, part in enumerate(parts):
        each = _part(part, _at(path, number), faults, has_before=has_before or number > 0)
        read += [] if each is None else [each]
    return ChainForm(read)


def _group(parts: Sequence[_WrittenPart], path: str, faults: Validation, *, has_before: bool) -> Form:
    read = list[Form]()
    if not parts:
        faults.add(path, Wrong.NO_CALLS())
    for number, part in enumerate(parts):
        each = _part(part, _at(path, number), faults, has_before=has_before)
        if each is not None and _ends_with_group(each):
            faults.add(_at(path, number), Wrong.GROUP_IN_GROUP())
        read += [] if each is None else [each]
    return GroupForm(read)


def _ends_with_group(form: Form) -> bool:
    while isinstance(form, ChainForm) and form.parts:
        form = form.parts[-1]
    return isinstance(form, GroupForm)


def _map(items: _WrittenItems, path: str, faults: Validation) -> Form:
    if not items.payloads:
        faults.add(_at(path, "payloads"), Wrong.NO_CALLS())
    places = ((_at(path, f"payloads.{number}"), text) for number, text in enumerate(items.payloads))
    job = _at(path, "job")
    return GroupForm(
        [WrittenCall(job, place, items.job, payload_text(text, place), takes=False) for place, text in places]
    )
