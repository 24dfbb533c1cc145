"""The engine's cache of jobs: at most one second old, and read again only when a job has changed."""

from collections.abc import Awaitable, Callable

import asyncpg
import make
import pytest
from stages import Workbench, workbench

from horai.db import signing_secrets
from horai.db.pool import GONE
from horai.engine.dispatch import job_cache
from horai.engine.dispatch.job_cache import JobCache
from horai.operations import jobs as accepted

CALLBACK_SETTINGS = signing_secrets.callback_settings


class HandTime:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> HandTime:
    made = HandTime()
    monkeypatch.setattr(job_cache, "time", made)
    return made


async def look(bench: Workbench, book: JobCache) -> Callable[..., Awaitable[list[str]]]:
    """Asks the book over a line of its own; what that cost, by name."""
    line = bench.line("book")
    tap = await bench.tap(line)

    async def ask(*job_ids: int) -> list[str]:
        tap.queries.clear()
        await book.get(await line.get(), job_ids)
        return await tap.names()

    return ask


async def test_the_job_cache_does_not_query_a_fresh_job_again(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        ask = await look(bench, book)

        assert await ask(job.id) == ["jobs_to_run", "callback_settings"]
        time.now += 0.9
        assert await ask(job.id) == []


async def test_a_job_that_has_not_changed_is_asked_for_and_not_read_again(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        ask = await look(bench, book)
        await ask(job.id)
        (before,) = (await book.get(bench.connection, [job.id])).values()
        time.now += 1.1

        assert await ask(job.id) == ["jobs_to_run", "callback_settings"], (
            "one statement for all, and one for the secrets"
        )

        (after,) = (await book.get(bench.connection, [job.id])).values()
        assert after is before


async def test_many_jobs_are_one_question(url: str, time: HandTime):
    async with workbench(url) as bench:
        ids = [(await make.job(bench.scope, f"job-{n}")).id for n in range(30)]
        book = JobCache()
        ask = await look(bench, book)
        await ask(*ids[:10])
        time.now += 0.5

        assert await ask(*ids) == ["jobs_to_run"]

        assert set(await book.get(bench.connection, ids)) == set(ids)


async def test_a_pause_is_seen_within_a_second(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        assert not (await book.get(bench.connection, [job.id]))[job.id].is_paused
        await accepted.pause_job(bench.scope, "publish", None)

        time.now += 1.01

        assert (await book.get(bench.connection, [job.id]))[job.id].is_paused


async def test_a_deleted_job_is_known_as_deleted_and_one_that_never_was_is_absent(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        await accepted.delete_job(bench.scope, "publish")

        found = await book.get(bench.connection, [job.id, 999])

        assert set(found) == {job.id}
        assert found[job.id].is_deleted


async def test_a_new_secret_is_used_after_a_second(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        known = (await book.get(bench.connection, [job.id]))[job.id]
        (first,) = book.secrets_of(known)
        await bench.connection.execute("insert into horai.signing_secret (tenant_id, secret) values (1, 'whsec_bmV3')")
        time.now += 1.01

        await book.get(bench.connection, [job.id])

        assert book.secrets_of(known) == ("whsec_bmV3", first), "the newest first"


async def test_a_worker_needs_no_secrets(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope, target={"type": "worker", "handler": "h"})
        book = JobCache()
        ask = await look(bench, book)

        assert await ask(job.id) == ["jobs_to_run"]
        assert book.secrets_of((await book.get(bench.connection, [job.id]))[job.id]) == ()


async def test_the_book_is_bounded_and_still_right(url: str, time: HandTime, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_cache, "LIMIT", 10)
    async with workbench(url) as bench:
        ids = [(await make.job(bench.scope, f"job-{n}")).id for n in range(12)]
        book = JobCache()
        for job_id in ids:
            assert set(await book.get(bench.connection, [job_id])) == {job_id}

        assert len(book._known) <= 10
        assert set(await book.get(bench.connection, ids)) == set(ids), "also for a batch beyond the bound"


async def test_an_answer_that_did_not_come_is_asked_for_again(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()
        line = bench.line("book")
        connection = await line.get()
        await bench.connection.execute("select pg_terminate_backend($1, 5000)", connection.get_server_pid())
        with pytest.raises((*GONE, asyncpg.PostgresError)):
            await book.get(connection, [job.id])

        assert set(await book.get(bench.connection, [job.id])) == {job.id}


async def test_no_job_is_known_before_its_secrets_are(url: str, time: HandTime, monkeypatch: pytest.MonkeyPatch):
    """Its calls would go out unsigned."""
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        book = JobCache()

        async def fails(_: object) -> dict[str, tuple[str, ...]]:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(signing_secrets, "callback_settings", fails)
        with pytest.raises(ConnectionResetError):
            await book.get(bench.connection, [job.id])
        monkeypatch.setattr(signing_secrets, "callback_settings", CALLBACK_SETTINGS)

        (known,) = (await book.get(bench.connection, [job.id])).values()

        assert len(book.secrets_of(known)) == 1
