"""The reports of the console's own test runs, one per session."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from console import chromium
from console.stage import staged
from console.vitest import Report, names_in, run, selected

VISITS = "e2e/*.test.ts"


@pytest.fixture(scope="session")
def shared_place(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """One directory for all workers of a run."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def parts_report(shared_place: Path) -> Report:
    """Return the report of the tests of parts and panels."""
    return run("parts", shared_place)


@pytest.fixture(scope="session")
def browser() -> Mapping[str, str]:
    """Return the variables of the browser for this machine; without one, skip the visits, or fail them in CI."""
    found = chromium.environment()
    if isinstance(found, chromium.Missing):
        if os.environ.get("CI") == "true":
            pytest.fail(f"the visits did not run: {found.reason}", pytrace=False)
        pytest.skip(f"the visits did not run: {found.reason}")
    return found


@pytest.fixture(scope="session")
def browser_report(
    request: pytest.FixtureRequest, shared_place: Path, short_place: Path, browser: Mapping[str, str]
) -> Report:
    """Run the visits that were selected in the browser and return their outcomes."""
    only = selected(names_in(VISITS), [item.name for item in request.session.items])
    return run("e2e", shared_place, around=lambda: staged(short_place, browser), only=only)
