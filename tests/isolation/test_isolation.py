"""Functions in their own processes: a fault of one costs only its own attempt."""

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from isolated_calls import EXECUTE_TIME, FIRE_TIME, call, is_alive, until
from isolated_pool import died, isolated, value

from horai.core.limits import RESULT_LIMIT
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Postponed, Succeeded

SOON = timedelta(seconds=2)
"""A timeout after which a function on a busy machine has told its process ids."""


async def test_a_function_in_a_process_of_its_own_is_told_all_that_it_would_be_told_in_the_worker():
    async with isolated() as (functions, _):
        asked = call("told")
        outcome = await functions.run(asked)

    assert isinstance(outcome, Succeeded)
    assert json.loads(outcome.output or "") == [
        str(asked.instance_id),
        "told",
        "k",
        FIRE_TIME.isoformat(),
        EXECUTE_TIME.isoformat(),
        4,
        3,
        asked.idempotency_key,
        "default:told:k",
    ]


async def test_every_outcome_of_a_function_comes_home():
    async with isolated() as (functions, _):
        retryable, unrecoverable, later = [
            await functions.run(call("raises", kind)) for kind in ("retryable", "unrecoverable", "later")
        ]

    assert isinstance(retryable, FailedRetryable)
    assert retryable.code == "ValueError"
    assert "isolated_app.py" in retryable.message
    assert isinstance(unrecoverable, FailedUnrecoverable)
    assert later == Postponed(timedelta(seconds=90))


@pytest.mark.usefixtures("new_interpreters")
async def test_a_child_has_the_surroundings_of_its_worker_and_a_session_of_its_own():
    async with isolated(environment={"HORAI_TEST_VARIABLE": "set"}) as (functions, _):
        found = await value(functions, "surroundings")

    assert found["cwd"] == str(Path.cwd())
    assert found["path"] == sys.path
    assert found["variable"] == "set"
    assert found["session"] == found["pid"] != os.getsid(0)
    assert found["stdin"] == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process offer itself")
async def test_when_memory_runs_out_children_go_before_their_worker():
    async with isolated() as (functions, _):
        assert (await value(functions, "surroundings"))["oom"] == "1000"


async def test_children_are_started_when_needed_and_used_again():
    async with isolated(2) as (functions, _):
        pids = {await value(functions, "whoami") for _ in range(5)}

    assert len(pids) == 1


async def test_two_children_run_two_functions_at_once():
    async with isolated(2) as (functions, heard):
        calls = [call("waits_for_the_end"), call("looks_for_the_end")]
        running = [asyncio.create_task(functions.run(each)) for each in calls]
        for each in calls:
            assert await heard.messages(each, 1) == ["waiting"]
        for each in calls:
            functions.claim_over(each.instance_id, each.fence)

        assert await asyncio.gather(*running) == [Succeeded('"told"'), Succeeded('"seen"')]


async def test_large_payloads_and_results_pass():
    async with isolated() as (functions, _):
        large = "ü" * (512 * 1024 - 2)
        refused = await functions.run(call("echo", large))
        longest = "x" * (RESULT_LIMIT - 2)

        assert isinstance(refused, FailedUnrecoverable)  # 1 MiB arrived, and is too long for a result
        assert refused.code == "RESULT_INVALID"
        assert await value(functions, "sized", RESULT_LIMIT - 2) == longest


async def test_output_that_functions_print_does_not_disturb_the_worker():
    async with isolated() as (functions, _):
        first = await value(functions, "babbles")

        assert await value(functions, "babbles") == first


@pytest.mark.parametrize("handler", ["spins", "blocks_the_loop", "holds_the_interpreter"])
async def test_a_timeout_kills_the_child_process_of_a_function_that_never_yields(handler: str):
    async with isolated() as (functions, heard):
        asked = call(handler, timeout=SOON)
        outcome = await functions.run(asked)
        (pid,) = await heard.pids(asked, 1)

        assert isinstance(outcome, FailedRetryable)
        assert outcome.code == "TIMEOUT"
        assert not is_alive(pid)
        assert await value(functions, "whoami") != pid


async def test_a_timeout_ends_what_the_function_has_started_as_well():
    async with isolated() as (functions, heard):
        asked = call("has_a_family", timeout=SOON)
        outcome = await functions.run(asked)
        pids = await heard.pids(asked, 2)

        assert isinstance(outcome, FailedRetryable)
        assert outcome.code == "TIMEOUT"
        await until(lambda: not any(map(is_alive, pids)))


async def test_a_timeout_begins_with_the_function_and_not_with_the_import():
    async with isolated(app="isolated_slow:app") as (functions, _):
        assert isinstance(await functions.run(call("whoami", timeout=timedelta(seconds=0.7))), Succeeded)


async def test_a_function_that_exits_costs_its_own_attempt_and_its_neighbour_goes_on():
    async with isolated(2) as (functions, heard):
        neighbour = call("waits_for_the_end")
        running = asyncio.create_task(functions.run(neighbour))
        await heard.messages(neighbour, 1)

        assert "exit code 3" in died(await functions.run(call("exits", 3)))
        assert "exit code 0" in died(await functions.run(call("exits", 0)))
        functions.claim_over(neighbour.instance_id, neighbour.fence)
        assert await running == Succeeded('"told"')


async def test_a_function_that_is_killed_is_said_to_have_been():
    async with isolated() as (functions, _):
        killed = died(await functions.run(call("signals_itself", signal.SIGKILL)))

        assert "signal 9 (SIGKILL): killed, perhaps because memory ran out" in killed
        assert "signal 11 (SIGSEGV)" in died(await functions.run(call("signals_itself", signal.SIGSEGV)))
        assert "signal 15 (SIGTERM)" in died(await functions.run(call("signals_itself", signal.SIGTERM)))
        assert await value(functions, "echo", "well") == "well"


async def test_a_crash_ends_what_the_function_has_started():
    async with isolated() as (functions, heard):
        asked = call("dies_before_its_family")
        died(await functions.run(asked))
        pids = await heard.pids(asked, 2)

        await until(lambda: not any(map(is_alive, pids)))


async def test_a_function_that_wants_more_memory_than_it_may_have_fails():
    async with isolated() as (functions, _):
        outcome = await functions.run(call("eats_memory"))

        assert isinstance(outcome, FailedRetryable)
        assert outcome.code == "MemoryError"


async def test_a_function_that_closes_everything_has_died():
    async with isolated() as (functions, _):
        died(await functions.run(call("closes_everything")))

        assert await value(functions, "echo", 1) == 1


async def test_progress_and_log_arrive_before_the_outcome():
    async with isolated() as (functions, heard):
        asked = call("tells")
        await functions.run(asked)

        assert heard.of(asked) == [(0.25, "a quarter"), (None, "half a pair: ?"), (0.5, None)]


async def test_a_function_that_tells_much_does_not_keep_the_worker_busy():
    async with isolated() as (functions, heard):
        asked = call("tells_much")
        await functions.run(asked)
        messages = [message for _, message in heard.of(asked) if message is not None]
        progress = [fraction for fraction, _ in heard.of(asked) if fraction is not None]

        assert 1_000 < len(messages) <= 2_000
        assert len(progress) < 2_000
        assert progress[-1] == 1.0


async def test_a_log_line_that_a_function_writes_before_it_crashes_is_delivered():
    async with isolated() as (functions, heard):
        asked = call("says_its_last")

        assert "exit code 7" in died(await functions.run(asked))
        assert heard.of(asked) == [(None, "now")]


async def test_output_that_a_function_prints_before_it_crashes_is_not_lost(capfd: pytest.CaptureFixture[str]):
    async with isolated() as (functions, _):
        died(await functions.run(call("prints_its_last")))

    assert "printed before the end\n" in capfd.readouterr().out


async def test_a_thread_that_a_function_leaves_behind_cannot_log_for_the_next_call():
    async with isolated() as (functions, heard):
        await functions.run(call("leaves_a_thread"))
        asked = call("outlasts_what_comes_late")
        await functions.run(asked)

        assert heard.of(asked) == [(None, "in time")]


async def test_a_copy_that_a_function_makes_of_its_process_has_no_say():
    async with isolated() as (functions, heard):
        asked = call("forks")

        assert await functions.run(asked) == Succeeded('"one answer"')
        assert heard.of(asked) == [(None, "the original")]
        assert await value(functions, "echo", 1) == 1
