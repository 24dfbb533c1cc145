"""The number of dispatchers that a cluster needs."""

import pytest

from horai.core.dispatchers import DispatcherFigures, desired_dispatchers


@pytest.mark.parametrize(
    ("live", "in_flight", "slots", "needs_scale", "desired"),
    [
        (0, 0, 0, False, 1),
        (0, 0, 0, True, 1),
        (2, 0, 2000, False, 1),
        (2, 700, 2000, False, 1),
        (2, 701, 2000, False, 2),
        (2, 1900, 2000, False, 3),
        (2, 0, 2000, True, 3),
        (3, 0, 3000, True, 5),
        (1, 1000, 1000, True, 2),
        (30, 0, 30_000, True, 32),
        (32, 32_000, 32_000, False, 32),
    ],
)
def test_the_desired_dispatchers_follow_the_calls_in_flight_and_the_request_of_the_governor(
    live: int, in_flight: int, slots: int, *, needs_scale: bool, desired: int
) -> None:
    assert desired_dispatchers(DispatcherFigures(live, in_flight, slots), needs_scale=needs_scale) == desired
