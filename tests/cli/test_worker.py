"""`horai worker` as a process: what it runs, how it ends, who replaces whom, and a way out of every refusal."""

import signal
import subprocess
from itertools import accumulate
from pathlib import Path

import psutil
import pytest
from harness import HoraiProcess
from terminal import Terminal
from workers import READY, SHOP, Shop, elsewhere, until

from horai.db.pool import Platform

STATES = (
    "select d.name, i.state from horai.job_instance i join horai.job_definition d using (job_id) order by instance_id"
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


async def test_a_worker_runs_what_another_process_enqueues(url: str, shop: Shop) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--name", "w1", start=subprocess.Popen) as worker:
            assert worker.ready() == READY.format("w1")
            handle = await job("greet").enqueue("Ada")
            assert await handle.result(timeout=30) == "hello Ada"
            worker.signal(signal.SIGTERM)

            assert worker.ends() == 0


async def test_at_sigterm_what_runs_may_end_and_nothing_else_begins(url: str, shop: Shop, connection: Platform) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--concurrency", "1") as worker:
            worker.started()
            hold = job("hold")
            await hold.enqueue_many([1, 2])
            await until(shop.noted)
            worker.signal(signal.SIGTERM)
            await until(lambda: "Stopping." in worker.log)
            await hold.enqueue(3)
            shop.let_go()

            assert worker.ends() == 0
    assert shop.noted() == ["begun 1", "ended 1"]
    assert [row["state"] for row in await connection.fetch(STATES)] == ["SUCCESS", "INIT", "INIT"]


@pytest.mark.parametrize(("name", "noted"), [("hold", "begun 1"), ("block", "blocks")])
async def test_a_second_ctrl_c_does_not_wait_even_for_a_function_that_blocks_the_loop(
    url: str, shop: Shop, name: str, noted: str
) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url) as worker:
            worker.started()
            await job(name).enqueue(1)
            await until(shop.noted)
            worker.signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                worker.ends(within=0.5)
            worker.signal(signal.SIGINT)

            assert worker.ends() == 130, "before its grace of 30 s is over"
    assert shop.noted() == [noted]


async def test_only_the_queues_it_is_given_are_its_own(url: str, shop: Shop, connection: Platform) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--queues", "mail,bills") as worker:
            worker.started()
            await job("greet").enqueue("Ada")
            await (await job("mail").enqueue()).result(timeout=30)
    states = {row["name"]: row["state"] for row in await connection.fetch(STATES)}
    assert states == {"greet": "INIT", "mail": "SUCCESS"}


async def test_no_more_functions_run_at_once_than_it_was_told(url: str, shop: Shop) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, HORAI_CONCURRENCY="4") as worker:  # one place stays free for the other functions
            worker.started()
            handles = await job("hold").enqueue_many(range(12))
            await until(lambda: len(shop.noted()) == 3)
            shop.let_go()
            for handle in handles:
                await handle.result(timeout=30)
    at_once = accumulate(1 if line.startswith("begun") else -1 for line in shop.noted())
    assert max(at_once) == 3


async def test_functions_that_want_it_run_in_as_many_processes_as_there_are_for_them(url: str, shop: Shop) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--isolated", "1") as worker:
            worker.started()
            handles = await job("apart").enqueue_many([None] * 4)
            pids = {await handle.result(timeout=30) for handle in handles}
            assert len(pids) == 1
            assert pids != {worker.pid}
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
    assert not psutil.pid_exists(pids.pop())


async def test_several_processes_share_the_work_and_one_that_is_killed_is_replaced(url: str, shop: Shop) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--name", "w", HORAI_PROCESSES="2", HORAI_CONCURRENCY="1") as workers:
            assert sorted([workers.ready(), workers.ready()]) == [READY.format("w-1"), READY.format("w-2")]
            await job("hold").enqueue_many([1, 2])
            await until(lambda: sorted(shop.noted()) == ["begun 1", "begun 2"])
            shop.let_go()
            await until(lambda: len(shop.noted()) == 4)

            workers.children[0].kill()
            assert workers.ready() in {READY.format("w-1"), READY.format("w-2")}
            assert "A process has ended: restarting it." in workers.log
            children = workers.children
            assert len(children) == 2
            workers.signal(signal.SIGTERM)

            assert workers.ends() == 0
    assert not any(child.is_running() for child in children)


def test_the_processes_of_a_worker_end_with_one_that_is_killed(url: str, shop: Shop) -> None:
    with shop.worker(url, "--processes", "2") as workers:
        workers.started().started()
        children = workers.children
        workers.signal(signal.SIGKILL)

        assert workers.ends() == -signal.SIGKILL
        assert psutil.wait_procs(children, timeout=30)[1] == []


async def test_changed_code_is_run_and_broken_code_is_waited_for(url: str, shop: Shop) -> None:
    async with elsewhere(url) as job:
        with shop.worker(url, "--reload", HORAI_NAME="dev") as worker:
            greet = job("greet")
            assert worker.ready() == READY.format("dev")
            assert await (await greet.enqueue("Ada")).result(timeout=30) == "hello Ada"

            shop.write("def broken(:\n")
            await until(lambda: "waiting for the code to change" in worker.log)
            assert "The module 'shop' cannot be imported: SyntaxError" in worker.log
            shop.write(SHOP.replace("hello", "good morning"))
            assert worker.ready() == READY.format("dev")

            assert await (await greet.enqueue("Ada")).result(timeout=30) == "good morning Ada"
            child = worker.children[0]
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
    assert not child.is_running()


def test_a_worker_without_a_url_works_beside_a_running_up(server: HoraiProcess, shop: Shop) -> None:
    with shop.worker("", "--name", "beside", "--data-dir", str(server.data_dir)) as worker:
        assert worker.ready() == READY.format("beside")


async def test_up_with_an_application_runs_its_schedules(shop: Shop, short_place: Path) -> None:
    shop.write(SHOP.replace('@app.job(queue="mail")', '@app.job(every="1s")'))
    up = HoraiProcess(short_place / "app", "--app", "shop", "--name", "n", PYTHONPATH=str(shop.place)).start()
    try:
        await until(shop.noted)
        assert READY.format("n-worker") in up.log.read_text()
        children = psutil.Process(up.pid).children(recursive=True)
    finally:
        print(up.log.read_text())
        assert up.stop() == 0
    assert not any(child.is_running() for child in children)


def test_a_worker_without_a_database_says_what_to_set(alone: Terminal, shop: Shop, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"

    for refused in (
        alone.at(shop.place)("worker", "shop", HORAI_DATA_DIR=str(nowhere)),
        alone.at(shop.place)("worker", "shop", "--data-dir", str(nowhere)),
    ):
        assert refused.failed_with(
            2,
            f"error: No database is named, and no `horai up` runs in {nowhere}: set HORAI_DATABASE_URL, or start "
            "`horai up`.",
        )
    assert not nowhere.exists()


def test_a_database_in_the_code_is_not_overruled_but_refused(alone: Terminal, shop: Shop, url: str) -> None:
    shop.write(SHOP.replace('Horai("shop")', 'Horai("shop", database_url="postgresql://elsewhere")'))

    for refused in (
        alone.at(shop.place)("worker", "shop", "--database-url", url),
        alone.at(shop.place)("worker", "shop", HORAI_DATABASE_URL=url),
    ):
        assert refused.failed_with(
            2,
            "error: The code of the application 'shop' names a database, and the worker was given another.",
            "hint: Leave one of them out: Horai(database_url=…), or --database-url and HORAI_DATABASE_URL.",
        )


def test_a_database_out_of_reach_is_told(alone: Terminal, shop: Shop) -> None:
    refused = alone.at(shop.place)("worker", "shop", "--database-url", "postgresql://127.0.0.1:1/none")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines()[-2].startswith("error: The database cannot be reached: ")


@pytest.mark.parametrize("command", [("worker",), ("up", "--port", "0", "--app")])
def test_a_module_that_is_nowhere_is_bad_usage(alone: Terminal, shop: Shop, command: tuple[str, ...]) -> None:
    assert alone.at(shop.place)(*command, "shopp:app").failed_with(
        2, "error: There is no module 'shopp'.", "hint: Did you mean shop?"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--queues", "mail,a b/c"), "Invalid value for '--queues': 'b/c' is not the name of a queue"),
        (("--concurrency", "0"), "greater than or equal to 1"),
        (("--lease-ttl", "0s"), "must be longer than 0"),
        (("--reload", "--processes", "2"), "--reload runs one process, not several."),
    ],
)
def test_a_wrong_flag_is_bad_usage(alone: Terminal, shop: Shop, arguments: tuple[str, ...], words: str) -> None:
    refused = alone.at(shop.place)("worker", "shop", *arguments)

    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err.splitlines()[0]
