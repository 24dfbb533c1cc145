"""Functions in processes of their own: whatever one does costs its own attempt, and nothing outlives the worker."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from isolated_calls import EXECUTE_TIME, FIRE_TIME, Heard, call, is_alive, pythons, until

from horai.core.calls import Call, HttpTarget
from horai.core.outcome import (
    RESULT_LIMIT,
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Postponed,
    Succeeded,
)
from horai.engine.dispatch.attempts import STOPPED
from horai.isolation import child
from horai.isolation.lifeline import PROGRAM
from horai.isolation.pool import IsolatedFunctions, pause_after

SOON = timedelta(seconds=0.3)


@asynccontextmanager
async def isolated(
    processes: int = 1, app: str = "isolated_app:app", **settings: Any
) -> AsyncGenerator[tuple[IsolatedFunctions, Heard]]:
    """A pool, and an ear; closed at the end, and nothing must be left of it."""
    before = pythons()
    functions, heard = IsolatedFunctions(app, processes, **settings), Heard()
    functions.notes = heard
    try:
        yield functions, heard
    finally:
        await functions.close()
    assert not pythons() - before


async def value(functions: IsolatedFunctions, handler: str, payload: Any = None) -> Any:
    """What a function that succeeds returns."""
    outcome = await functions.run(call(handler, payload))
    assert isinstance(outcome, Succeeded), outcome
    return None if outcome.output is None else json.loads(outcome.output)


def died(outcome: Outcome) -> str:
    """Of what."""
    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == "PROCESS_DIED"
    return outcome.message


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


async def test_what_functions_print_does_not_disturb_the_worker():
    async with isolated() as (functions, _):
        first = await value(functions, "babbles")

        assert await value(functions, "babbles") == first


@pytest.mark.parametrize("handler", ["spins", "blocks_the_loop", "holds_the_interpreter"])
async def test_a_timeout_ends_the_work_whatever_it_does(handler: str):
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

        assert "signal 9 (SIGKILL): killed, perhaps for want of memory" in killed
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


async def test_what_a_function_said_before_it_crashed_is_heard():
    async with isolated() as (functions, heard):
        asked = call("says_its_last")

        assert "exit code 7" in died(await functions.run(asked))
        assert heard.of(asked) == [(None, "now")]


async def test_what_a_function_printed_before_it_crashed_is_not_lost(capfd: pytest.CaptureFixture[str]):
    async with isolated() as (functions, _):
        died(await functions.run(call("prints_its_last")))

    assert "printed before the end\n" in capfd.readouterr().out


async def test_what_a_function_left_running_does_not_speak_for_the_next():
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


async def test_an_app_that_cannot_be_imported_is_a_failure_that_says_why_and_is_not_tried_at_once():
    async with isolated(app="isolated_broken:app") as (functions, _):
        failed = died(await functions.run(call("echo")))
        back = await functions.run(call("echo"))

        assert "its configuration is missing" in failed
        assert "isolated_broken.py" in failed
        assert isinstance(back, NotSent)
        assert timedelta(0) < back.delay <= pause_after(1)

        outcomes: list[Outcome] = [back]
        async with asyncio.timeout(30):
            while isinstance(outcomes[-1], NotSent):
                await asyncio.sleep(0.05)
                outcomes.append(await functions.run(call("echo")))
        died(outcomes[-1])
        later = await functions.run(call("echo"))
        assert isinstance(later, NotSent)
        assert pause_after(1) < later.delay <= pause_after(2)


async def test_an_app_that_does_not_exist_is_a_failure_that_says_so():
    async with isolated(app="no_such_module:app") as (functions, _):
        assert "No module named 'no_such_module'" in died(await functions.run(call("echo")))


async def test_an_app_that_is_none_is_a_failure_that_says_so():
    async with isolated(app="isolated_app:os.path") as (functions, _):
        assert "isolated_app:os.path is no Horai application" in died(await functions.run(call("echo")))


def test_the_pause_between_failed_starts_grows_and_has_an_end():
    assert [pause_after(failures).total_seconds() for failures in (1, 2, 3, 4, 7, 100)] == [0.5, 1, 2, 4, 30, 30]


async def test_a_job_that_the_code_no_longer_has_fails_and_can_be_tried_again():
    async with isolated() as (functions, _):
        outcome = await functions.run(call("no_such_job"))

        assert isinstance(outcome, FailedRetryable)
        assert outcome.code == "HANDLER_MISSING"


async def test_an_http_job_is_not_run_here():
    async with isolated() as (functions, _):
        outcome = await functions.run(call("echo")._replace(target=HttpTarget("http://example.org")))

        assert isinstance(outcome, FailedUnrecoverable)


async def test_an_idle_child_that_has_died_costs_nobody_anything():
    async with isolated() as (functions, _):
        first = await value(functions, "dies_when_idle")
        await until(lambda: not is_alive(first))

        assert await value(functions, "whoami") != first


async def test_a_child_that_dies_before_it_begins_costs_nobody_anything():
    async with isolated() as (functions, _):
        first = await value(functions, "whoami")
        os.kill(first, signal.SIGKILL)  # nobody in this process has had the time to notice

        assert await value(functions, "whoami") != first


async def test_a_child_that_does_not_begin_is_replaced(monkeypatch: pytest.MonkeyPatch):
    async with isolated() as (functions, _):
        first = await value(functions, "whoami")
        os.kill(first, signal.SIGSTOP)
        monkeypatch.setattr(child, "BEGIN_WITHIN", 0.1)
        running = asyncio.create_task(functions.run(call("whoami")))
        await until(lambda: not is_alive(first))
        monkeypatch.undo()

        assert isinstance(await running, Succeeded)


async def test_a_child_is_replaced_after_its_share_of_calls():
    async with isolated(max_runs=2) as (functions, _):
        pids = [await value(functions, "whoami") for _ in range(4)]

        assert pids[0] == pids[1] != pids[2] == pids[3]
        await until(lambda: not is_alive(pids[0]))


async def test_calls_beyond_the_line_go_back_and_handlers_take_turns():
    async with isolated(1, waiting=2) as (functions, heard):
        first = call("waits_for_the_end")
        ended: list[str] = []

        async def run(each: Call) -> Outcome:
            outcome = await functions.run(each)
            ended.append(each.job)
            return outcome

        running = [asyncio.create_task(run(first))]
        await heard.messages(first, 1)
        running += [asyncio.create_task(run(each)) for each in (call("waits_for_the_end"), call("waits_for_the_end"))]
        other = asyncio.create_task(run(call("echo", 1)))
        await asyncio.sleep(0)
        back = await functions.run(call("waits_for_the_end"))

        assert isinstance(back, NotSent)
        assert back.delay > timedelta(0)
        functions.claim_over(first.instance_id, first.fence)
        assert await other == Succeeded("1")
        assert ended == ["waits_for_the_end", "echo"]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_all_handlers_share_one_line_and_none_is_kept_out():
    async with isolated(1, waiting=1) as (functions, heard):
        first = call("waits_for_the_end")
        running = [asyncio.create_task(functions.run(first))]
        await heard.messages(first, 1)
        running += [asyncio.create_task(functions.run(each)) for each in (call("waits_for_the_end"), call("echo", 1))]
        await asyncio.sleep(0)

        assert isinstance(await functions.run(call("echo", 2)), NotSent)
        assert not any(task.done() for task in running)
        functions.claim_over(first.instance_id, first.fence)
        assert await running[2] == Succeeded("1")
        running[1].cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_what_is_cancelled_while_it_stands_in_line_does_not_begin():
    async with isolated() as (functions, heard):
        first, second = call("waits_for_the_end"), call("tells")
        running = [asyncio.create_task(functions.run(each)) for each in (first, second)]
        await heard.messages(first, 1)
        functions.claim_over(second.instance_id, second.fence)
        functions.claim_over(first.instance_id, first.fence)

        assert await asyncio.gather(*running) == [Succeeded('"told"'), NotSent()]
        assert not heard.of(second)


async def test_a_call_that_is_not_this_workers_any_more_when_its_turn_comes_does_not_begin():
    held: set[str] = {"waits_for_the_end"}
    async with isolated(is_held=lambda call: call.job in held) as (functions, heard):
        first, second = call("waits_for_the_end"), call("tells")
        running = [asyncio.create_task(functions.run(each)) for each in (first, second)]
        await heard.messages(first, 1)
        functions.claim_over(first.instance_id, first.fence)

        assert await asyncio.gather(*running) == [Succeeded('"told"'), NotSent()]
        assert not heard.of(second)


async def test_a_cancelled_run_kills_its_child_and_all_that_it_has_started():
    async with isolated() as (functions, heard):
        asked = call("has_a_family")
        running = asyncio.create_task(functions.run(asked))
        pids = await heard.pids(asked, 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

        assert running.cancelled()
        await until(lambda: not any(map(is_alive, pids)))
        assert await value(functions, "echo", 1) == 1


async def test_a_run_that_is_cancelled_while_its_child_starts_leaves_nothing():
    async with isolated(app="isolated_slow:app") as (functions, _):
        before = set(psutil.Process().children())
        running = asyncio.create_task(functions.run(call("echo")))
        await until(lambda: any("isolated_slow:app" in each.cmdline() for each in _new(before)))
        pid = next(each.pid for each in _new(before) if "isolated_slow:app" in each.cmdline())
        running.cancel()

        await until(lambda: not is_alive(pid))


def _new(before: set[psutil.Process]) -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if each not in before and is_alive(each.pid)]


async def test_closing_kills_what_runs_sends_back_what_waits_and_leaves_no_process():
    before = pythons()
    async with isolated() as (functions, heard):
        first, second, third = call("has_a_family"), call("has_a_family"), call("echo")
        running = [asyncio.create_task(functions.run(each)) for each in (first, second, third)]
        pids = await heard.pids(first, 2)
        await functions.close()

        assert await asyncio.gather(*running) == [STOPPED, NotSent(), NotSent()]
        assert not any(map(is_alive, pids))
        assert not pythons() - before
        assert await functions.run(call("echo")) == NotSent()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("horai-child")]


@pytest.mark.parametrize("handler", ["has_a_family", "holds_the_interpreter"])
async def test_a_worker_that_is_killed_leaves_no_process(handler: str):
    place = Path(__file__).parent
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, str(place / "isolated_worker.py"), handler),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    assert worker.stdout is not None
    async with asyncio.timeout(30):
        pids = [int(await worker.stdout.readline()) for _ in range(2)]
        begun = psutil.Process(pids[0]).cpu_times().user
        pids += [process.pid for process in psutil.Process(worker.pid).children(recursive=True)]
    assert all(map(is_alive, pids))
    assert len(set(pids)) == 3  # the warden is the third
    if handler == "holds_the_interpreter":  # it does when it works, and does not only say that it will
        await until(lambda: psutil.Process(pids[0]).cpu_times().user > begun + 0.3)
    worker.kill()
    await worker.wait()

    await until(lambda: not any(map(is_alive, pids)))


async def test_a_warden_that_has_died_is_replaced_with_the_next_child():
    before = set(psutil.Process().children())
    async with isolated(2) as (functions, heard):
        first, second = call("waits_for_the_end"), call("waits_for_the_end")
        running = [asyncio.create_task(functions.run(first))]
        await heard.messages(first, 1)
        (warden,) = _wardens(before)
        warden.kill()
        await until(lambda: not _wardens(before))
        running.append(asyncio.create_task(functions.run(second)))
        await heard.messages(second, 1)

        assert len(_wardens(before)) == 1
        for each in (first, second):
            functions.claim_over(each.instance_id, each.fence)
        assert await asyncio.gather(*running) == [Succeeded('"told"')] * 2


def _wardens(before: set[psutil.Process]) -> list[psutil.Process]:
    return [each for each in _new(before) if each.cmdline()[-1].endswith("warden.py")]


async def test_a_child_without_a_warden_ends_when_its_worker_is_gone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        alone = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(theirs.fileno()), "isolated_app:app", json.dumps(sys.path)),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        async with asyncio.timeout(30):
            await reader.readexactly(1)
            writer.close()
            assert await alone.wait() == -signal.SIGKILL
