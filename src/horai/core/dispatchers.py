"""The number of dispatchers that a cluster needs, as autoscalers read it.

A dispatcher is a live node with the role `executor`. Pure: the figures are those of the heartbeats, and `needs_scale` is
the request of the governor.
"""

import math
from dataclasses import dataclass

from horai.core.limits import SHARDS

FULL_AT = 0.7
"""The share of its slots at which a dispatcher counts as full."""
GROWTH = 1.5
"""The factor by which the dispatchers grow while the governor requests more."""


@dataclass(frozen=True, slots=True)
class DispatcherFigures:
    """The live dispatchers, and the instances that they run and may run at once, all together."""

    live: int = 0
    in_flight: int = 0
    slots: int = 0


def desired_dispatchers(figures: DispatcherFigures, *, needs_scale: bool) -> int:
    """Return how many dispatchers the cluster needs: 1 to 32, because a dispatcher without a shard claims nothing.

    The calls in flight fill at most 70 % of the slots. While the governor requests more dispatchers, it is half as many
    again as there are, rounded up. The figure says nothing about CPU: combine it with a target for CPU.
    """
    per_dispatcher = figures.slots / figures.live if figures.live else 0.0
    by_slots = math.ceil(figures.in_flight / (per_dispatcher * FULL_AT)) if per_dispatcher else 0
    by_request = math.ceil(figures.live * GROWTH) if needs_scale else 0
    return min(max(by_slots, by_request, 1), SHARDS)
