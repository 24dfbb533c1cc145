"""The fixtures for pytest, in test runs of their own; and the guide, whose tests are run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
BLOCK = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
PLUGIN = ("-p", "horai.testing.plugin", "-p", "no:cacheprovider")

pytest_plugins = ["pytester"]


def test_the_fixture_puts_an_application_into_a_harness(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from horai import Horai

        app = Horai("fixture")

        @app.job(every="1h")
        def hourly(): ...

        def test_it_is_run_every_hour(horai_harness):
            with horai_harness(app, start="2026-03-01T08:30:00Z") as time:
                assert len(time.advance("1d")) == 24

        def test_nothing_is_left_of_it(horai_harness):
            with horai_harness(app) as time:
                assert time.fired(hourly) == []
    """)

    ran = pytester.runpytest_subprocess(*PLUGIN, "-W", "error")

    ran.assert_outcomes(passed=2)


def test_the_tests_of_the_guide_pass_as_they_stand(pytester: pytest.Pytester) -> None:
    files = dict(BLOCK.findall(GUIDE.read_text()))
    assert len(files) == GUIDE.read_text().count("```python")
    for name, text in files.items():
        (pytester.path / name).write_text(text)
    (pytester.path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )

    ran = pytester.runpytest_subprocess(*PLUGIN, "-W", "error")

    ran.assert_outcomes(passed=4)


def test_the_plugin_loads_nothing_before_a_test_asks() -> None:
    """It is part of every start of pytest, also for those who test something else."""
    shown = (
        "import sys, pytest; before = set(sys.modules); import horai.testing.plugin; print(*set(sys.modules) - before)"
    )

    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True, timeout=60)

    assert set(done.stdout.split()) == {"horai", "horai.testing", "horai.testing.plugin"}
