"""The fault tests start and kill hundreds of processes: these are forked from one that has its imports behind it."""

import pytest
from forked import Forked
from harness import HoraiProcess


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HoraiProcess, "launch", Forked)
