"""The hooks, resources and middleware of an application in the processes of its isolated functions."""

from pathlib import Path

import pytest
from isolated_calls import call
from isolated_pool import died, isolated, value

from horai.core.outcome import FailedRetryable

pytestmark = pytest.mark.usefixtures("new_interpreters")


async def test_each_process_opens_its_resources_once_and_closes_them_when_it_leaves(tmp_path: Path) -> None:
    life = tmp_path / "life"
    async with isolated(app="isolated_life:app", environment={"HORAI_TEST_LIFE": str(life)}) as (functions, _):
        assert await value(functions, "add", {"amount": 1}) == 16
        assert await value(functions, "add", {"amount": 1, "more": 2}) == 20
        assert life.read_text().split() == ["opens", "starts"]
    assert life.read_text().split() == ["opens", "starts", "ends", "closes"]


async def test_a_process_whose_start_fails_runs_nothing_and_says_why(tmp_path: Path) -> None:
    life = tmp_path / "life"
    environment = {"HORAI_TEST_LIFE": str(life), "HORAI_TEST_BROKEN": "1"}
    async with isolated(app="isolated_life:app", environment=environment) as (functions, _):
        failed = await functions.run(call("add", {"amount": 1}))
    assert isinstance(failed, FailedRetryable)
    assert "no broker" in died(failed)
    assert life.read_text().split() == ["opens", "ends", "closes"]
