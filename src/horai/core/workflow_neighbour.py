"""Neighbours of an instance in its workflow run."""

from dataclasses import dataclass

from horai.core.states import State


@dataclass(frozen=True, slots=True)
class Parent:
    """What an instance waits for in its workflow; `state` is None while it moves."""

    name: str
    instance_id: int
    state: State | None
