"""The console in a real Chromium against a real `horai up`; see console/e2e/*.test.ts."""

from collections.abc import Callable

import pytest

from console.conftest import VISITS
from console.vitest import Report, as_tests, names_in

# The first test waits for all visits, each of which has a limit of 240 s: together they take 900 s beside other tests on two cores, and
# took more than 1,200 s on a slower machine.
pytestmark = [pytest.mark.visits, pytest.mark.timeout(2_400)]
NAMES = names_in(VISITS)


def _passes(name: str) -> Callable[[Report], None]:
    def passes(browser_report: Report) -> None:
        outcome = browser_report[name]
        assert outcome.status == "passed", outcome.said

    return passes


globals().update(as_tests(NAMES, _passes))


def test_every_visit_that_was_made_is_one_of_these(browser_report: Report) -> None:
    assert sorted(browser_report) == sorted(NAMES)
