"""The parts and panels of the console, in Vitest; see console/src/**/*.test.ts(x)."""

from collections.abc import Callable

from console.vitest import Report, as_tests, names_in

NAMES = names_in("src/**/*.test.ts*")


def _passes(name: str) -> Callable[[Report], None]:
    def passes(parts_report: Report) -> None:
        outcome = parts_report[name]
        assert outcome.status == "passed", outcome.said

    return passes


globals().update(as_tests(NAMES, _passes))


def test_every_test_that_ran_is_one_of_these(parts_report: Report) -> None:
    assert sorted(parts_report) == sorted(NAMES)
