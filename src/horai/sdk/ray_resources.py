"""The options of `executor="ray"`: the resources that Ray reserves for each call of a function."""

from collections.abc import Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any, NamedTuple, TypedDict, cast

from horai.core.errors import Invalid

EXECUTORS = ("ray",)
EXAMPLE = 'Write, for example, resources={"num_cpus": 2, "num_gpus": 1, "memory": 4 * 1024**3}.'
MOST = 100_000
MOST_MEMORY = 2**50
"""Bytes, one pebibyte."""


class Resources(TypedDict, total=False):
    """The resources of one call: cores (1), GPUs (0), and bytes of memory (as much as there is).

    Cores and GPUs may be fractions; GPUs above 1 are whole.
    """

    num_cpus: float
    num_gpus: float
    memory: int


class RayResources(NamedTuple):
    """The checked resources of a job that runs on Ray."""

    num_cpus: float = 1
    num_gpus: float = 0
    memory: int | None = None

    def options(self) -> dict[str, float]:
        """Return the options of a Ray task."""
        options: dict[str, float] = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus}
        return options if self.memory is None else options | {"memory": self.memory}


def ray_resources_of(options: Mapping[str, Any]) -> RayResources | None:
    """Return the resources of a job with `executor="ray"`; None for other jobs. Raises `Invalid` for a wrong option."""
    executor, resources = options.get("executor"), options.get("resources")
    if executor is None:
        if resources is not None:
            raise Invalid.field("resources", 'is only accepted with executor="ray"', 'Add executor="ray".')
        return None
    if executor not in EXECUTORS:
        raise Invalid.field(
            "executor", f'must be "ray", not {executor!r:.80}', "Leave it out to run the function in the worker."
        )
    if options.get("isolation") is not None:
        raise Invalid.field(
            "isolation", 'is not accepted together with executor="ray"', "A Ray task has a process of its own already."
        )
    return _checked(resources)


def _checked(resources: object) -> RayResources:
    if resources is None:
        return RayResources()
    if not isinstance(resources, Mapping):
        raise Invalid.field("resources", f"must be a mapping, not {type(resources).__name__}", EXAMPLE)
    given = cast("Mapping[str, Any]", resources)
    for name in given:
        if name not in RayResources._fields:
            near = get_close_matches(str(name), RayResources._fields, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(RayResources._fields)}."
            raise Invalid.field("resources", f"has no resource {name!r:.80}", hint)
    gpus = _amount("num_gpus", given.get("num_gpus", 0))
    if gpus > 1 and gpus != int(gpus):
        raise Invalid.field("resources", "num_gpus above 1 must be a whole number", EXAMPLE)
    return RayResources(_amount("num_cpus", given.get("num_cpus", 1)), gpus, _memory(given.get("memory")))


def _amount(name: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given) or not 0 <= given <= MOST:
        raise Invalid.field("resources", f"{name} is not a number from 0 to {MOST}", EXAMPLE)
    return given


def _memory(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_MEMORY:
        raise Invalid.field("resources", "memory is not a whole number of bytes, from 1 to 2**50", EXAMPLE)
    return given
