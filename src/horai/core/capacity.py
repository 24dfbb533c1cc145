"""Capacity: rates, storage and nodes from the number of fires a day. Pure arithmetic; the defaults are those of seed 002.

Sizes are in decimal units: 1 GB is 10^9 bytes.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class CapacityInputs:
    """The load to plan for."""

    definitions: int = 3_000_000
    fires_per_day: int = 800_000_000
    peak_factor: float = 6.0
    """The rate of the busiest second, in parts of the average rate."""
    record_bytes: float = 700.0
    """Bytes that one execution leaves behind, with its indexes."""
    hot_days: int = 14
    cold_days: int = 90
    node_rate: float = 8_000.0
    """Instances that one node claims, runs and settles per second."""
    spare_nodes: int = 1
    """Nodes that may fail at the peak."""
    headroom: float = 1.5
    """Nodes to deploy, in parts of the least number: for deployments, failures and growth."""

    def problem(self) -> str | None:
        """Return the name of the first input that cannot be planned with; None if all can."""
        at_least = {"fires_per_day": 1, "peak_factor": 1, "headroom": 1, "definitions": 0, "spare_nodes": 0}
        too_low = [name for name, least in at_least.items() if not getattr(self, name) >= least]
        positive = ("record_bytes", "hot_days", "cold_days", "node_rate")
        found = [*too_low, *(name for name in positive if not getattr(self, name) > 0)]
        found += [name for name, value in asdict(self).items() if not math.isfinite(value)]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The figures that follow from the inputs."""

    average_rate: float
    peak_rate: float
    bytes_per_day: float
    hot_bytes: float
    cold_bytes: float
    least_nodes: int
    deployed_nodes: int

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON has them, rounded to whole instances and bytes."""
        return {
            "averagePerSecond": round(self.average_rate),
            "peakPerSecond": round(self.peak_rate),
            "bytesPerDay": round(self.bytes_per_day),
            "hotBytes": round(self.hot_bytes),
            "coldBytes": round(self.cold_bytes),
            "leastNodes": self.least_nodes,
            "deployedNodes": self.deployed_nodes,
        }


def plan_capacity(inputs: CapacityInputs) -> CapacityPlan:
    """Return the figures for the load.

    The least number of nodes is that of the peak, rounded up, and the spare ones: 55,556 / 8,000 = 6.9, so 7 + 1 = 8.
    """
    average = inputs.fires_per_day / SECONDS_PER_DAY
    per_day = inputs.fires_per_day * inputs.record_bytes
    least = math.ceil(average * inputs.peak_factor / inputs.node_rate) + inputs.spare_nodes
    return CapacityPlan(
        average_rate=average,
        peak_rate=average * inputs.peak_factor,
        bytes_per_day=per_day,
        hot_bytes=per_day * inputs.hot_days,
        cold_bytes=per_day * inputs.cold_days,
        least_nodes=least,
        deployed_nodes=math.ceil(least * inputs.headroom),
    )


@dataclass(frozen=True, slots=True)
class CapacityFindings:
    """The measurements of a machine or a database; None is not measured."""

    instances: int
    finished_bytes: float | None
    """Bytes of a finished instance with its attempts, events and notes, indexes included."""
    waiting_bytes: float | None = None
    """Bytes of an instance that waits for its time, indexes included."""
    node_rate: float | None = None

    def document(self) -> dict[str, Any]:
        """Return the measurements as JSON has them."""
        return {
            "instances": self.instances,
            "bytesPerFinishedInstance": _rounded(self.finished_bytes),
            "bytesPerWaitingInstance": _rounded(self.waiting_bytes),
            "instancesPerSecond": _rounded(self.node_rate),
        }


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def with_findings(inputs: CapacityInputs, found: CapacityFindings) -> CapacityInputs:
    """Return the inputs with the measured bytes and rate in place of the assumed ones."""
    return replace(
        inputs,
        record_bytes=found.finished_bytes or inputs.record_bytes,
        node_rate=found.node_rate or inputs.node_rate,
    )
