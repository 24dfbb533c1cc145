"""The processes of isolated functions: started, replaced, waited for in line, and none outlives its worker."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from isolated_calls import call, is_alive, pythons, until
from isolated_pool import died, isolated, value

from horai.core.calls import Call, HttpTarget
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Succeeded
from horai.engine.dispatch.attempts import STOPPED
from horai.isolation import child
from horai.isolation.lifeline import PROGRAM
from horai.isolation.pool import pause_after


@pytest.mark.usefixtures("new_interpreters")
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
        assert "isolated_app:os.path is not a Horai application" in died(await functions.run(call("echo")))


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


async def test_the_death_of_an_idle_child_process_fails_no_call():
    async with isolated() as (functions, _):
        first = await value(functions, "dies_when_idle")
        await until(lambda: not is_alive(first))

        assert await value(functions, "whoami") != first


async def test_the_death_of_a_child_process_before_a_call_begins_fails_no_call():
    async with isolated() as (functions, _):
        first = await value(functions, "whoami")
        os.kill(first, signal.SIGKILL)  # no code in this process has had the time to notice

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


async def test_a_call_that_is_cancelled_while_it_waits_in_line_does_not_begin():
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


@pytest.mark.usefixtures("new_interpreters")
async def test_a_run_that_is_cancelled_while_its_child_starts_leaves_nothing():
    async with isolated(app="isolated_slow:app") as (functions, _):
        before = set(psutil.Process().children())
        running = asyncio.create_task(functions.run(call("echo")))
        await until(lambda: any("isolated_slow:app" in _command(each) for each in _new(before)))
        pid = next(each.pid for each in _new(before) if "isolated_slow:app" in _command(each))
        running.cancel()

        await until(lambda: not is_alive(pid))


def _new(before: set[psutil.Process]) -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if each not in before and is_alive(each.pid)]


def _command(process: psutil.Process) -> str:
    """Return its command line; it may end at any moment."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


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
        (orphan_killer,) = _orphan_killers(before)
        orphan_killer.kill()
        await until(lambda: not _orphan_killers(before))
        running.append(asyncio.create_task(functions.run(second)))
        await heard.messages(second, 1)

        assert len(_orphan_killers(before)) == 1
        for each in (first, second):
            functions.claim_over(each.instance_id, each.fence)
        assert await asyncio.gather(*running) == [Succeeded('"told"')] * 2


def _orphan_killers(before: set[psutil.Process]) -> list[psutil.Process]:
    return [each for each in _new(before) if _command(each).endswith("orphan_killer.py")]


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
