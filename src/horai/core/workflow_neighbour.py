"""Neighbours of an instance in its workflow run."""

from dataclasses import dataclass

from horai.core.states import State


@dataclass(frozen=True, slots=True)
class Parent:
    """A direct parent or child of an instance in its workflow; `state` is None while it is neither live nor ended."""

    name: str
    instance_id: int
    state: State | None
