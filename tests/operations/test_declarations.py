"""Jobs that code declares: applied at start, once, though several processes start at the same time.

A declaration never goes over an operator's head.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import make
import pytest
from databases import Superuser

from horai.core.errors import Invalid, NotFound
from horai.core.job import JobStatus
from horai.db.jobs import JobRow
from horai.operations import jobs
from horai.operations.declarations import DeclaredJob, compare, declare
from horai.operations.declared_owner import DeclaredChanges, Owner
from horai.operations.jobs import JobChange
from horai.operations.scope import Scope, require_job

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


def declared(name: str = "publish", payload: str | None = None, **fields: Any) -> DeclaredJob:
    return DeclaredJob({"name": name, "target": {"type": "worker", "handler": name}, **fields}, payload)


async def read(scope: Scope, name: str = "publish") -> JobRow:
    async with scope.read() as connection:
        return await require_job(connection, scope, name)


async def written(connection: Superuser) -> list[str]:
    """Every row that a declaration may write."""
    tables = ("job", "event", "schedule", "skip", "lane", "instance_live")
    rows = [await connection.fetch(f"select t::text as row from horai.{table} t order by 1") for table in tables]
    return [row["row"] for found in rows for row in found]


async def events(connection: Superuser) -> list[str]:
    return [row["kind"] for row in await connection.fetch("select kind from horai.event order by id")]


@asynccontextmanager
async def processes(url: str, count: int) -> AsyncGenerator[list[Scope]]:
    """Scopes with pools of their own."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(make.scope(url, 4)) for _ in range(count)]


async def test_declare_creates_the_jobs_of_the_code(url: str) -> None:
    async with make.scope(url) as scope:
        said = await declare(
            scope,
            "shop",
            [
                declared("mail", queue="slow", tags=["a"], payloadSchema=SCHEMA),
                declared("coupons", '{"a": 1}', cron="0 9 * * *", timezone="Asia/Shanghai"),
            ],
        )

        assert said == DeclaredChanges(created=("coupons", "mail"))
        mail, coupons = await read(scope, "mail"), await read(scope, "coupons")
        assert mail.document["payloadSchema"] == SCHEMA
        assert (mail.document["declaredBy"], mail.document["queue"], mail.tags) == ("shop", "slow", ("a",))
        assert (coupons.document["cron"], coupons.payload) == ("0 9 * * *", '{"a": 1}')
        assert coupons.schedule_id is not None


async def test_a_second_start_writes_nothing(url: str, connection: Superuser) -> None:
    first = datetime(2998, 1, 1, tzinfo=timezone(timedelta(hours=8)))
    every = [
        declared("a", cron="0 9 * * *", timezone="Asia/Shanghai", dst={"gap": "skip"}, payloadSchema=SCHEMA),
        declared("b", '{"x": [1, 2]}', every="10m", priority="core", retry={"maxRetry": 3}, timeout="30s"),
        declared("c", queue="slow", tags=["x", "y"], misfire="once"),
        declared("d", at=first),
        declared("e", delay="1h"),
    ]
    async with make.scope(url) as scope:
        assert len((await declare(scope, "shop", every)).created) == 5
        before = await written(connection)

        again = await declare(scope, "shop", every)

        assert again == DeclaredChanges(unchanged=("a", "b", "c", "d", "e"))
        assert await written(connection) == before


async def test_declare_changes_only_jobs_that_changed_in_the_code_and_writes_nothing_else(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared("a", queue="slow", tags=["x"]), declared("b")])
        before = await read(scope, "b")

        said = await declare(scope, "shop", [declared("a", "5", queue="fast"), declared("b")])

        assert said == DeclaredChanges(changed=("a",), unchanged=("b",))
        changed = await read(scope, "a")
        assert (changed.document["queue"], changed.tags, changed.payload, changed.version) == ("fast", (), "5", 2)
        assert await read(scope, "b") == before
        assert await events(connection) == ["JOB_CREATED", "JOB_CREATED", "JOB_CHANGED"]
        told = await connection.fetchval("select data::text from horai.event where kind = 'JOB_CHANGED'")
        assert told == '{"fields": ["queue", "tags", "payload"], "application": "shop"}'


async def test_waiting_instances_follow_a_change_of_queue(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(queue="slow")])
        await make.put(scope, "k", datetime(2998, 1, 1, tzinfo=UTC))

        await declare(scope, "shop", [declared(queue="fast")])

        lane = (await read(scope)).lane_id
        assert await connection.fetchval("select lane from horai.instance_live") == lane


async def test_an_operators_pause_and_note_survive_a_start_with_changed_code(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(cron="0 9 * * *")])
        paused = await jobs.pause_job(scope, "publish", "the shop is closed")

        said = await declare(scope, "shop", [declared(cron="0 10 * * *", queue="fast")])

        job = await read(scope)
        assert said.changed == ("publish",)
        assert (job.status, job.note, job.paused_at) == (JobStatus.PAUSED, "the shop is closed", paused.paused_at)
        assert (job.document["cron"], job.document["queue"]) == ("0 10 * * *", "fast")
        assert "status" not in job.document


async def test_an_operators_pause_is_no_change_that_a_start_would_write(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared()])
        await jobs.pause_job(scope, "publish", "wait")
        before = await written(connection)

        assert await declare(scope, "shop", [declared()]) == DeclaredChanges(unchanged=("publish",))
        assert await written(connection) == before


async def test_a_status_in_the_code_counts_when_the_job_is_made_and_never_after(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(status="PAUSED")])
        assert (await read(scope)).status is JobStatus.PAUSED
        await jobs.resume_job(scope, "publish", None)

        assert (await declare(scope, "shop", [declared(status="PAUSED")])).unchanged == ("publish",)
        assert (await declare(scope, "shop", [declared(status="PAUSED", queue="q")])).changed == ("publish",)
        assert (await read(scope)).status is JobStatus.ACTIVE


async def test_declare_reverts_the_changes_of_an_operator_to_the_code(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(queue="slow", payloadSchema=SCHEMA)])
        patched = await jobs.change_job(scope, "publish", JobChange({"queue": "mine", "tags": ["t"]}))
        assert (patched.document["payloadSchema"], patched.document["declaredBy"]) == (SCHEMA, "shop")

        assert (await declare(scope, "shop", [declared(queue="slow", payloadSchema=SCHEMA)])).changed == ("publish",)
        assert ((await read(scope)).document["queue"], (await read(scope)).tags) == ("slow", ())


async def test_a_changed_cron_makes_slots_from_now_on_and_an_unchanged_one_goes_on(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(cron="0 9 * * *")])
        made = await read(scope)

        await declare(scope, "shop", [declared(cron="0 9 * * *", queue="fast")])
        same = await read(scope)
        await declare(scope, "shop", [declared(cron="0 10 * * *", queue="fast")])
        other = await read(scope)

        assert (same.schedule_id, same.active_from) == (made.schedule_id, made.active_from)
        assert other.schedule_id != made.schedule_id
        assert other.active_from > made.active_from


async def test_a_job_made_by_hand_for_this_very_handler_is_taken_over(url: str) -> None:
    async with make.scope(url) as scope:
        made = await make.job(scope, "publish", target={"type": "worker", "handler": "publish"}, every="1h")

        assert (await declare(scope, "shop", [declared(every="1h")])).changed == ("publish",)
        taken = await read(scope)
        assert (taken.id, taken.document["declaredBy"], taken.active_from) == (made.id, "shop", made.active_from)


async def test_a_job_made_by_hand_for_something_else_is_left_alone(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        before = await written(connection)

        with pytest.raises(Invalid, match="publish: was made by hand"):
            await declare(scope, "shop", [declared("another"), declared("publish")])

        assert await written(connection) == before


async def test_a_job_of_another_application_is_left_alone(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared()])
        before = await written(connection)

        with pytest.raises(Invalid, match="publish: is declared by the application 'shop'"):
            await declare(scope, "warehouse", [declared(queue="q")])

        assert await written(connection) == before


async def test_a_renamed_application_takes_over_the_jobs_of_its_former_name(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(), declared("mail")])
        made = await read(scope)

        said = await declare(scope, Owner("store", frozenset({"shop"})), [declared()])
        with pytest.raises(Invalid, match="publish: is declared by the application 'store'") as refused:
            await declare(scope, "shop", [declared()])

        now = await read(scope)
        assert (said, now.id) == (DeclaredChanges(changed=("publish",)), made.id)
        assert (now.document["declaredBy"], (await read(scope, "mail")).document["declaredBy"]) == ("store", "shop")
        assert refused.value.hint is not None
        assert "Horai('shop', formerly='store')" in refused.value.hint


async def test_of_two_applications_that_start_together_one_gets_the_job(url: str) -> None:
    async with processes(url, 2) as (first, second):
        said = await asyncio.gather(
            declare(first, "shop", [declared()]), declare(second, "billing", [declared()]), return_exceptions=True
        )

        (refused,) = [answer for answer in said if isinstance(answer, Invalid)]
        owner = (await read(first)).document["declaredBy"]
        assert f"is declared by the application {owner!r}" in str(refused)


async def test_jobs_of_an_application_without_a_name_go_to_the_first_with_one(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, Owner(None), [declared()])
        assert "declaredBy" not in (await read(scope)).document

        assert await declare(scope, "shop", [declared()]) == DeclaredChanges(changed=("publish",))
        with pytest.raises(Invalid, match="is declared by the application 'shop'"):
            await declare(scope, Owner(None), [declared()])


async def test_a_job_that_the_code_no_longer_has_is_reported_and_not_touched(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared("a"), declared("b"), declared("c")])
        await declare(scope, "warehouse", [declared("w")])
        await make.job(scope, "by-hand")
        before = await written(connection)

        assert await declare(scope, "shop", [declared("b")]) == DeclaredChanges(unchanged=("b",), removed=("a", "c"))
        assert await declare(scope, "shop", []) == DeclaredChanges(removed=("a", "b", "c"))
        assert await written(connection) == before


async def test_a_deleted_job_is_made_again_by_the_next_start(url: str) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared()])
        first = await read(scope)
        await jobs.delete_job(scope, "publish")

        assert await declare(scope, "shop", []) == DeclaredChanges()
        assert (await declare(scope, "shop", [declared()])).created == ("publish",)
        assert (await read(scope)).id != first.id


async def test_every_fault_of_every_job_is_told_at_once_and_nothing_is_written(url: str, connection: Superuser) -> None:
    wrong = [
        declared("good"),
        declared("coupons", cron="61 * * * *", timezone="Mars/Base"),
        declared("mail", retry={"maxRetry": -1}),
        declared("good", queue="twice"),
        declared("late", at=datetime(2998, 1, 1)),  # noqa: DTZ001
    ]
    async with make.scope(url) as scope:
        before = await written(connection)

        with pytest.raises(Invalid) as refused:
            await declare(scope, "shop", wrong)

        assert [error.field for error in refused.value.errors] == [
            "coupons.timezone",
            "coupons.cron",
            "mail.retry.maxRetry",
            "good.name",
            "late.at",
        ]
        assert all(f"{error.field}: {error.message}" in refused.value.detail for error in refused.value.errors)
        assert await written(connection) == before


@pytest.mark.parametrize("app", ["", "a\nb", "x\x00", "\ud800", "a" * 200])
async def test_an_application_needs_a_printable_name(url: str, app: str) -> None:
    async with make.scope(url) as scope:
        with pytest.raises(Invalid, match="application"):
            await declare(scope, app, [declared()])


async def test_a_single_time_never_changes_and_can_give_way_to_a_schedule(url: str, connection: Superuser) -> None:
    at = datetime(2998, 1, 1, tzinfo=UTC)
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared(at=at)])
        assert await connection.fetchval("select execute_time from horai.instance_live") == at

        with pytest.raises(Invalid, match=r"publish\.at: cannot be changed"):
            await declare(scope, "shop", [declared(at=at + timedelta(days=1))])
        with pytest.raises(Invalid, match=r"publish\.delay: cannot be changed"):
            await declare(scope, "shop", [declared(delay="5s")])
        assert (await declare(scope, "shop", [declared(every="1h")])).changed == ("publish",)
        assert "at" not in (await read(scope)).document


async def test_comparing_says_what_a_start_would_do_and_writes_nothing(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await declare(scope, "shop", [declared("a"), declared("b"), declared("c")])
        before = await written(connection)
        wanted = [declared("a"), declared("b", queue="q"), declared("d", every="1h")]

        said = await compare(scope, "shop", wanted)

        assert said == DeclaredChanges(created=("d",), changed=("b",), unchanged=("a",), removed=("c",))
        assert await written(connection) == before
        with pytest.raises(Invalid, match=r"a\.cron"):
            await compare(scope, "shop", [declared("a", cron="x")])
        await make.job(scope, "hand")
        with pytest.raises(Invalid, match="hand: was made by hand"):
            await compare(scope, "shop", [declared("hand")])
        assert await declare(scope, "shop", wanted) == said


async def test_of_eight_processes_that_start_together_each_job_is_written_by_one(
    url: str, connection: Superuser
) -> None:
    first = [declared(f"job{n:02}", every=f"{n % 3 + 1}h", queue=f"q{n % 4}") for n in range(20)]
    then = [declared(f"job{n:02}", every=f"{n % 3 + 2}h", queue=f"q{n % 5}", tags=["new"]) for n in range(20)]
    names = tuple(f"job{n:02}" for n in range(20))
    async with processes(url, 8) as scopes:
        made = await asyncio.gather(*(declare(scope, "shop", first) for scope in scopes))
        changed = await asyncio.gather(*(declare(scope, "shop", then) for scope in scopes))

        assert sorted(name for said in made for name in said.created) == sorted(names)
        assert not [name for said in made for name in said.changed]
        assert sorted(name for said in changed for name in said.changed) == sorted(names)
        assert Counter(await events(connection)) == {"JOB_CREATED": 20, "JOB_CHANGED": 20}
        assert await connection.fetchval("select array_agg(distinct version) from horai.job") == [2]
        assert await declare(scopes[0], "shop", then) == DeclaredChanges(unchanged=names)


async def test_a_job_deleted_while_it_is_declared_is_there_in_the_end(url: str) -> None:
    async with processes(url, 4) as scopes:
        await declare(scopes[0], "shop", [declared()])

        async def delete() -> None:
            with suppress(NotFound):
                await jobs.delete_job(scopes[0], "publish")

        for n in range(10):
            await asyncio.gather(*(declare(scope, "shop", [declared(queue=f"q{n}")]) for scope in scopes), delete())
            await declare(scopes[0], "shop", [declared(queue=f"q{n}")])
            assert (await read(scopes[0])).document["queue"] == f"q{n}"
