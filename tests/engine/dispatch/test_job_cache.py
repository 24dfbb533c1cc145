"""The engine's cache of jobs: at most one second old, and read again only when a job has changed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import asyncpg
import make
import pytest
from stages import Workbench, workbench

from horai.core.calls import HttpTarget
from horai.core.encryption import KeyEncryptionKey
from horai.core.wakes import DataKeysWake
from horai.db import data_keys, signing_secrets
from horai.db.jobs import Runnable
from horai.db.pool import GONE
from horai.db.wakeups import Wakeups
from horai.engine.dispatch import job_cache
from horai.engine.dispatch.job_cache import JobCache
from horai.operations import jobs as accepted
from horai.operations.keyring import Keyring
from horai.operations.signing_secrets import sealed_signing_secret
from horai.time.schedule import CronSchedule

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


async def test_C42c_opened_secrets_are_closed_when_data_keys_are_erased(url: str, time: HandTime):
    async with workbench(url) as bench:
        keyring, wakeups = Keyring((KeyEncryptionKey(bytes(range(32))),), time.monotonic), Wakeups()
        target = {"type": "http", "url": "http://127.0.0.1:9/hook", "headers": {"Authorization": "hunter2"}}
        job = await make.job(replace(bench.scope, keyring=keyring), target=target)
        await signing_secrets_sealed(bench, keyring)
        book = JobCache(keyring)
        book.subscribe_to(wakeups)
        assert headers_of((await book.get(bench.connection, [job.id]))[job.id]) == {"Authorization": "hunter2"}

        await data_keys.erase_data_keys(bench.connection, 1)
        wakeups.deliver(DataKeysWake())

        known = (await book.get(bench.connection, [job.id]))[job.id]
        assert headers_of(known) == {"Authorization": "***"}
        assert book.secrets_of(known) == (), "a call without a signature is not sent"


async def test_C42c_without_a_wake_opened_secrets_end_with_their_data_key(url: str, time: HandTime):
    async with workbench(url) as bench:
        keyring = Keyring((KeyEncryptionKey(bytes(range(32))),), time.monotonic)
        target = {"type": "http", "url": "http://127.0.0.1:9/hook", "headers": {"Authorization": "hunter2"}}
        job = await make.job(replace(bench.scope, keyring=keyring), target=target)
        await signing_secrets_sealed(bench, keyring)
        book = JobCache(keyring)
        ask = await look(bench, book)
        assert await ask(job.id) == ["jobs_to_run", "callback_settings", "data_keys"]
        time.now += 1.1
        assert await ask(job.id) == ["jobs_to_run", "callback_settings"], "the data key is fresh"
        await data_keys.erase_data_keys(bench.connection, 1)

        time.now += 4.0

        known = (await book.get(bench.connection, [job.id]))[job.id]
        assert headers_of(known) == {"Authorization": "***"}
        assert book.secrets_of(known) == ()


async def signing_secrets_sealed(bench: Workbench, keyring: Keyring) -> None:
    async with bench.connection.transaction():
        sealed = await sealed_signing_secret(bench.connection, keyring, 1)
        assert sealed is not None
        await signing_secrets.replace_signing_secret(bench.connection, 1, sealed)


def headers_of(job: Runnable) -> Mapping[str, str]:
    assert job.recipe is not None
    assert isinstance(job.recipe.target, HttpTarget)
    return job.recipe.target.headers


async def test_a_schedule_that_a_calendar_replaces_is_read_again_without_a_new_version(url: str, time: HandTime):
    async with workbench(url) as bench:
        job = await make.job(bench.scope, name="workdays", cron="0 9 * * *")
        other = await make.job(bench.scope, name="weekdays", cron="0 9 * * 1-5")
        book = JobCache()
        before = (await book.get(bench.connection, [job.id]))[job.id]
        await bench.connection.execute(
            "update horai.job set schedule_id = (select schedule_id from horai.job where id = $2) where id = $1",
            job.id,
            other.id,
        )
        time.now += 1.01

        after = (await book.get(bench.connection, [job.id]))[job.id]

        assert after.version == before.version
        assert (before.interval_from, after.interval_from) == (
            CronSchedule("0 9 * * *"), CronSchedule("0 9 * * 1-5"),
        )  # fmt: skip
