"""Children of isolated functions are forked with their imports done, except in tests of their start."""

import subprocess

import pytest
from forked import FORKING, open_nursery

from horai.isolation import lifeline


@pytest.fixture(autouse=True)
def forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    open_nursery()  # before the test looks which processes there are
    monkeypatch.setattr(lifeline, "subprocess", FORKING)


@pytest.fixture
def new_interpreters(forked_children: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each child is a new interpreter, as in a worker of users."""
    monkeypatch.setattr(lifeline, "subprocess", subprocess)
