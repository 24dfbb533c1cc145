"""The reports of the console's own test runs, one per session."""

from pathlib import Path

import pytest

from console.stage import staged
from console.vitest import Report, run


@pytest.fixture(scope="session")
def shared_place(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """One directory for all workers of a run."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def parts_report(shared_place: Path) -> Report:
    """What the tests of parts and panels came to."""
    return run("parts", shared_place)


@pytest.fixture(scope="session")
def browser_report(shared_place: Path, short_place: Path) -> Report:
    """What the visits of a browser came to."""
    return run("e2e", shared_place, around=lambda: staged(short_place))
