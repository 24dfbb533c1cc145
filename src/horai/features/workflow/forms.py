"""Forms of compositions: the nodes of the workflow that runs calls in chains and groups. All functions are pure.

A form is the jobs of the calls and their order. The arguments are not part of it: they are the payload of the run.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from horai.core.errors import Invalid
from horai.features.workflow.composed import CALLS
from horai.text import Wrong

TAG = "composed"
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FormEnds:
    """The nodes at the end of a part of a composition. `is_list`: the call after them takes their results as a list."""

    nodes: tuple[str, ...] = ()
    is_list: bool = False


class PlannedCall(Protocol):
    """A call in a composition, with its arguments."""

    @property
    def job_name(self) -> str:
        """The name of its job."""
        ...

    @property
    def takes_result(self) -> bool:
        """Return whether the call takes the results before it. It takes none at the beginning."""
        ...

    @property
    def payload(self) -> str:
        """The payload of the call without a result, as JSON text."""
        ...

    def template(self, before: FormEnds) -> str:
        """Return the payload that waits for the results before the call."""
        ...


@dataclass(frozen=True, slots=True)
class ChainForm:
    """Parts one after the other."""

    parts: "Sequence[PlannedCall | ChainForm | GroupForm]"


@dataclass(frozen=True, slots=True)
class GroupForm:
    """Parts side by side. Calls of one job that take no result become one map."""

    parts: "Sequence[PlannedCall | ChainForm | GroupForm]"


Form: TypeAlias = PlannedCall | ChainForm | GroupForm


@dataclass(slots=True)
class FormPlan:
    """The nodes of a composition, the payload of its run, and the nodes at its end."""

    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    calls: dict[str, msgspec.Raw] = field(default_factory=dict[str, msgspec.Raw])
    items: dict[str, list[msgspec.Raw]] = field(default_factory=dict[str, list[msgspec.Raw]])
    ends: FormEnds = field(default_factory=FormEnds)

    @property
    def jobs(self) -> list[str]:
        """Return the names of the jobs, in the order of their first calls."""
        return list(dict.fromkeys(node["job"] for node in self.nodes))

    @property
    def payload(self) -> bytes:
        """Return the payload of the run as JSON text."""
        return msgspec.json.encode({CALLS: self.calls, **self.items})

    @property
    def name(self) -> str:
        """Return the name of the workflow: the same for compositions of the same form."""
        digest = hashlib.sha256(json.dumps(self.nodes, sort_keys=True).encode()).hexdigest()[:16]
        return f"{'-'.join(self.jobs)[:_NAME_LENGTH]}-{digest}"

    @property
    def document(self) -> dict[str, Any]:
        """Return the document of the workflow, without its nodes."""
        return {"name": self.name, "tags": [TAG], "description": "A composition: chain, group or chord."}

    def _add(self, job: str, before: FormEnds, **fields: Any) -> str:
        """Add a node and return its name: that of its job, with a number if it occurs again."""
        count = sum(1 for node in self.nodes if node["job"] == job)
        name = job if count == 0 else f"{job}-{count + 1}"
        self.nodes.append({"name": name, "job": job, "after": list(before.nodes), **fields})
        return name

    def add_call(self, call: PlannedCall, before: FormEnds) -> str:
        """Add a call and return the name of its node."""
        name = self._add(call.job_name, before)
        takes = bool(before.nodes) and call.takes_result
        self.calls[name] = _raw(call.template(before) if takes else call.payload)
        return name

    def add_items(self, calls: Sequence[PlannedCall], before: FormEnds) -> str:
        """Add calls of one job as the items of a map, and return the name of its node."""
        member = f"items-{len(self.nodes)}"
        self.items[member] = [_raw(call.payload) for call in calls]
        return self._add(calls[0].job_name, before, map={"overPayload": member})


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def plan_of(form: Form) -> FormPlan:
    """Return the plan of a composition. Raises `Invalid` for a group without calls, and for one in a group."""
    plan = FormPlan()
    plan.ends = _lay_out(plan, form, FormEnds())
    return plan


def _lay_out(plan: FormPlan, form: Form, before: FormEnds) -> FormEnds:
    """Add the calls of a form after the nodes `before`; return the nodes at its end."""
    if isinstance(form, ChainForm):
        for part in form.parts:
            before = _lay_out(plan, part, before)
        return before
    if isinstance(form, GroupForm):
        return _lay_out_group(plan, form, before)
    return FormEnds((plan.add_call(form, before),))


def _lay_out_group(plan: FormPlan, form: GroupForm, before: FormEnds) -> FormEnds:
    if not form.parts:
        raise Invalid.field("group", Wrong.NO_CALLS())
    calls = [part for part in form.parts if not isinstance(part, ChainForm | GroupForm)]
    if len(calls) == len(form.parts) and _is_map(calls, before):
        return FormEnds((plan.add_items(calls, before),))
    ends = list[str]()
    for part in form.parts:
        end = _lay_out(plan, part, before)
        if end.is_list or len(end.nodes) != 1:
            raise Invalid.field("group", Wrong.GROUP_IN_GROUP())
        ends += end.nodes
    return FormEnds(tuple(ends), is_list=True)


def _is_map(calls: Sequence[PlannedCall], before: FormEnds) -> bool:
    return len({call.job_name for call in calls}) == 1 and not (
        before.nodes and any(call.takes_result for call in calls)
    )
