"""The size and the promises of a drill."""

from dataclasses import dataclass, field
from datetime import timedelta

from horai.cli.drills.outcome import DrillLimits
from horai.core.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class DrillPlan:
    """The load of a drill, its cluster and its promises."""

    limits: DrillLimits
    rate: int = 100
    """Instances that clients create per second."""
    calm: timedelta = timedelta(seconds=5)
    """The time of the load before the failure, and after the recovery."""
    lease: timedelta = timedelta(seconds=8)
    asynchronous: bool = False
    names: tuple[str, str] = ("one", "two")
    engine: EngineSettings = field(default_factory=EngineSettings)
