"""Queues that code declares: applied at every start, once, though several processes start at the same time.

A declaration leaves a pause to the operator, and a queue of another application to that application.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import make
import pytest
from databases import Superuser
from rows import until
from working import working

from horai import Horai, Node, Queue
from horai.core.errors import Invalid
from horai.core.job import Priority
from horai.core.queue import QueueSettings, parse_rate
from horai.db.queues import QueueRow
from horai.operations import queues
from horai.operations.declared_owner import DeclaredChanges
from horai.operations.scope import Scope
from horai.testing import Harness

WRITTEN = ("queue", "queue_slot", "event", "audit", "definition_version", "lane", "job")
"""The tables that a declaration may write."""


def shop_of(url: str | None = None, name: str = "shop", formerly: str = "", **limits: Any) -> Horai:
    """An application with the queue mail and a job in it."""
    app = Horai(name, database_url=url, formerly=formerly or ())
    mail = app.queue("mail", **limits)

    @app.job(queue=mail)
    async def send(letter: int) -> int:
        return letter

    return app


async def read(scope: Scope, name: str = "mail") -> QueueRow:
    return await queues.read_queue(scope, name)


async def rows_of(connection: Superuser) -> list[str]:
    found = [await connection.fetch(f"select t::text as row from horai.{table} t order by 1") for table in WRITTEN]
    return [row["row"] for rows in found for row in rows]


async def events(connection: Superuser) -> int:
    return await connection.fetchval("select count(*) from horai.event where kind = 'QUEUE_CHANGED'")


async def test_a_start_sets_the_queues_of_the_code(url: str) -> None:
    app = shop_of(max_concurrency=5, rate="100/s", priority="high", title="Mail", description="All mail", owner="crm")

    async with make.scope(url) as scope:
        applied = await app.declare_to(scope)

        queue = await read(scope)
        assert applied == DeclaredChanges(created=("queue mail", "send"))
        assert (queue.version, queue.declared_by) == (1, "shop")
        assert queue.settings == QueueSettings(
            Priority.high, 5, parse_rate("100/s"), title="Mail", description="All mail", owner="crm"
        )


async def test_the_limit_of_the_code_holds_for_running_instances(url: str) -> None:
    app = Horai("shop", database_url=url)
    mail = app.queue("mail", max_concurrency=2)
    started, release = list[int](), asyncio.Event()

    @app.job(queue=mail)
    async def send(letter: int) -> int:
        started.append(letter)
        await release.wait()
        return letter

    @app.job
    async def free() -> str:
        return "free"

    async def are_two() -> bool:
        return len(started) >= 2

    async with working(app):
        handles = await send.enqueue_many(range(5))
        await until(are_two)
        assert await (await free.enqueue()).result("30s") == "free"
        assert len(started) == 2
        release.set()
        assert sorted([await handle.result("30s") for handle in handles]) == list(range(5))


async def test_the_limit_of_the_code_holds_in_virtual_time() -> None:
    app, inside, most = Horai("shop"), list[int](), list[int]()
    mail = app.queue("mail", max_concurrency=2)

    @app.job(queue=mail)
    async def send(letter: int) -> None:
        inside.append(letter)
        most.append(len(inside))
        for _ in range(20):
            await asyncio.sleep(0)
        inside.remove(letter)

    async with Harness(app) as time:
        await send.enqueue_many(range(8))
        await time.drain()

    assert (len(most), max(most)) == (8, 2)


async def test_an_instance_of_another_job_that_names_the_queue_counts_too(url: str) -> None:
    app = Horai("shop", database_url=url)
    mail = app.queue("mail", max_concurrency=1, priority="low")

    @app.job
    async def render(page: int) -> int:
        return page

    async with working(app):
        handle = await render.options(queue=mail).enqueue(7)
        later = await render.options(queue=mail, delay="1h").enqueue_many([1])
        assert await handle.result("30s") == 7
        async with (await app.client()).scope.read() as connection:
            places = await connection.fetchrow(
                "select lane.queue, lane.priority from horai.instance_live live join horai.lane on lane.id = live.lane"
                " where live.id = $1",
                int(later[0].id),
            )
        assert places is not None
        assert tuple(places) == ("mail", Priority.low)


async def test_a_second_start_writes_nothing(url: str, connection: Superuser) -> None:
    limits: Any = {"max_concurrency": 5, "rate": 100, "priority": "normal", "owner": "crm"}
    async with make.scope(url) as scope:
        await shop_of(**limits).declare_to(scope)
        known, version = await rows_of(connection), (await read(scope)).version

        again = await shop_of(**limits).declare_to(scope)

        assert again == DeclaredChanges(unchanged=("queue mail", "send"))
        assert ((await read(scope)).version, await rows_of(connection)) == (version, known)


async def test_an_option_that_the_code_no_longer_has_gets_its_default(url: str) -> None:
    async with make.scope(url) as scope:
        await shop_of(max_concurrency=5, rate="30/m", priority="low", title="Mail").declare_to(scope)

        applied = await shop_of(rate=None).declare_to(scope)

        assert applied == DeclaredChanges(changed=("queue mail",), unchanged=("send",))
        assert (await read(scope)).settings == QueueSettings()


async def test_an_operators_pause_and_note_survive_a_start_with_changed_code(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await shop_of(max_concurrency=5).declare_to(scope)
        # As the command line and the console write it: with the priority that they read.
        held = QueueSettings(Priority.normal, max_concurrency=5, paused=True, note="the provider is down")
        await queues.set_queue(scope, "mail", held)
        known = await rows_of(connection)

        assert (await shop_of(max_concurrency=5).declare_to(scope)).changed == ()
        assert await rows_of(connection) == known
        await shop_of(max_concurrency=6).declare_to(scope)

        settings = (await read(scope)).settings
        assert (settings.paused, settings.note, settings.max_concurrency) == (True, "the provider is down", 6)


async def test_a_start_undoes_other_changes_of_an_operator(url: str) -> None:
    async with make.scope(url) as scope:
        await shop_of(max_concurrency=5).declare_to(scope)
        await queues.set_queue(scope, "mail", QueueSettings(max_concurrency=50, owner="ops"))
        assert (await read(scope)).declared_by == "shop"

        await shop_of(max_concurrency=5).declare_to(scope)

        assert (await read(scope)).settings == QueueSettings(max_concurrency=5)


async def test_a_second_application_is_refused_and_told_who_declares_the_queue(url: str, connection: Superuser) -> None:
    other = Horai("billing")
    other.queue("mail", max_concurrency=9)
    other.queue("bills", max_concurrency=1)
    other.job(name="bill")(lambda: None)
    async with make.scope(url) as scope:
        await shop_of(max_concurrency=5).declare_to(scope)
        known = await rows_of(connection)

        for start in (other.declare_to, other.compare_to):
            with pytest.raises(Invalid) as refused:
                await start(scope)

            assert str(refused.value) == (
                "queue mail: is declared by the application 'shop', and a queue belongs to the first application that declares it"
            )
            assert refused.value.hint == (
                "If this is the same application, write Horai('billing', formerly='shop'). Otherwise give one of the two"
                " queues another name."
            )
        assert await rows_of(connection) == known


async def test_a_renamed_application_takes_its_queues_over(url: str) -> None:
    async with make.scope(url) as scope:
        await shop_of(max_concurrency=5).declare_to(scope)

        applied = await shop_of(name="store", formerly="shop", max_concurrency=5).declare_to(scope)

        assert applied == DeclaredChanges(changed=("queue mail", "send"))
        queue = await read(scope)
        assert (queue.declared_by, queue.settings.max_concurrency) == ("store", 5)


async def test_a_queue_that_was_set_by_hand_is_taken_over_with_its_pause(url: str) -> None:
    async with make.scope(url) as scope:
        await queues.set_queue(scope, "mail", QueueSettings(max_concurrency=50, title="By hand", paused=True))

        applied = await shop_of(max_concurrency=5).declare_to(scope)

        queue = await read(scope)
        assert applied.changed == ("queue mail",)
        assert (queue.declared_by, queue.settings) == ("shop", QueueSettings(max_concurrency=5, paused=True))


async def test_a_queue_set_by_hand_as_the_code_has_it_gets_its_owner(url: str) -> None:
    async with make.scope(url) as scope:
        await queues.set_queue(scope, "mail", QueueSettings(max_concurrency=5))

        assert (await shop_of(max_concurrency=5).declare_to(scope)).changed == ("queue mail",)
        assert (await shop_of(max_concurrency=5).declare_to(scope)).changed == ()
        assert (await read(scope)).declared_by == "shop"


async def test_queues_of_an_application_without_a_name_go_to_the_first_with_one(url: str) -> None:
    async with make.scope(url) as scope:
        nameless = Horai()
        nameless.queue("mail", max_concurrency=5)
        await nameless.declare_to(scope, may_be_unnamed=True)
        assert (await nameless.declare_to(scope, may_be_unnamed=True)).unchanged == ("queue mail",)
        assert (await read(scope)).declared_by is None

        await shop_of(max_concurrency=5).declare_to(scope)

        assert (await read(scope)).declared_by == "shop"
        with pytest.raises(Invalid, match="queue mail: is declared by the application 'shop'"):
            await nameless.declare_to(scope, may_be_unnamed=True)


async def test_a_queue_that_the_code_no_longer_has_is_reported_while_it_limits_something(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        app = shop_of(max_concurrency=5)
        app.queue("slow", rate="1/m")
        await app.declare_to(scope)
        after = Horai("shop")
        after.job(name="send")(lambda: None)
        await after.declare_to(scope)
        known = await rows_of(connection)

        assert (await after.declare_to(scope)).removed == ("queue mail", "queue slow")
        assert await rows_of(connection) == known
        await queues.set_queue(scope, "slow", QueueSettings(Priority.normal))
        applied = await after.declare_to(scope)

        assert (applied.removed, applied.removed_queues, applied.removed_jobs) == (("queue mail",), ("queue mail",), ())


async def test_a_queue_is_not_written_if_a_job_of_the_code_is_refused(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await shop_of().declare_to(scope)
        known = await rows_of(connection)
        other = Horai("billing")
        other.queue("bills", max_concurrency=1)
        other.job(name="send")(lambda: None)

        with pytest.raises(Invalid, match="send: is declared by the application 'shop'"):
            await other.declare_to(scope)

        assert await rows_of(connection) == known


async def test_comparing_names_the_queues_that_a_start_would_write_and_writes_nothing(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        before = shop_of(max_concurrency=5)
        before.queue("bulk", priority="low")
        before.queue("old", rate="1/s")
        await before.declare_to(scope)
        known = await rows_of(connection)
        app = shop_of(max_concurrency=6)
        app.queue("bulk", priority="low")
        app.queue("new")

        applied = await app.compare_to(scope)

        assert applied == DeclaredChanges(("queue new",), ("queue mail",), ("queue bulk", "send"), ("queue old",))
        assert await rows_of(connection) == known


async def test_of_eight_processes_that_start_together_each_queue_is_written_by_one(
    url: str, connection: Superuser
) -> None:
    def app() -> Horai:
        made = shop_of(max_concurrency=5)
        for name in ("a", "z", "m"):
            made.queue(name, rate="10/s")
        return made

    async with AsyncExitStack() as stack:
        scopes = [await stack.enter_async_context(make.scope(url, 4)) for _ in range(8)]

        said = await asyncio.gather(*(app().declare_to(scope) for scope in scopes))

        created = sorted(name for each in said for name in each.created)
        assert created == ["queue a", "queue m", "queue mail", "queue z", "send"]
        assert await events(connection) == 4
        assert {
            row["version"] for row in await connection.fetch("select version from horai.queue where version > 0")
        } == {1}


async def test_of_two_applications_that_start_together_one_gets_the_queue(url: str, connection: Superuser) -> None:
    async with make.scope(url) as first, make.scope(url) as second:
        apps = Horai("shop"), Horai("billing")
        for app in apps:
            app.queue("mail", max_concurrency=len(str(app.name)))

        ended = await asyncio.gather(apps[0].declare_to(first), apps[1].declare_to(second), return_exceptions=True)

        refused = [each for each in ended if isinstance(each, Invalid)]
        owner = (await read(first)).declared_by
        assert (len(refused), owner in {"shop", "billing"}, await events(connection)) == (1, True, 1)
        assert repr(owner) in str(refused[0])


async def test_a_queue_that_another_application_takes_after_the_comparison_stays_its_own(url: str) -> None:
    """The second look, with the queue locked, decides."""
    from horai.operations import declared_queues  # noqa: PLC0415
    from horai.operations.declared_owner import Owner  # noqa: PLC0415

    async with make.scope(url) as scope:
        planned = await declared_queues.look(scope, Owner("billing"), [{"name": "mail", "maxConcurrency": 9}])
        await shop_of(max_concurrency=5).declare_to(scope)

        with pytest.raises(Invalid, match="queue mail: is declared by the application 'shop'"):
            await planned.apply(scope)

        assert (await read(scope)).settings.max_concurrency == 5


async def test_a_process_that_declares_a_missing_job_declares_its_queue_and_no_other(url: str) -> None:
    app = shop_of(url, max_concurrency=5)
    app.queue("bulk", max_concurrency=1)
    send: Any = app.jobs["send"]

    await send.enqueue(1)

    scope = (await app.client()).scope
    assert (await read(scope)).settings.max_concurrency == 5
    with pytest.raises(Exception, match="no queue"):
        await read(scope, "bulk")
    await app.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": "fast"}, "rate: 'fast' is not a rate"),
        ({"rate": 5.5}, "rate: '5.5' is not a rate"),
        ({"rate": True}, "rate: 'True' is not a rate"),
        ({"rate": 0}, "rate: is not between 1 and 1000000"),
        ({"max_concurrency": 0}, "maxConcurrency: is not between 1 and 10000"),
        ({"max_concurrency": "5"}, "maxConcurrency: is not between 1 and 10000"),
        ({"max_concurrency": True}, "maxConcurrency: is not between 1 and 10000"),
        ({"priority": "urgent"}, "priority: 'urgent' is not one of core, high, normal, low"),
        ({"priority": ["low"]}, "is not one of core, high, normal, low"),
        ({"title": " "}, "title: has no visible character"),
        ({"owner": 7}, "owner: has no visible character"),
        ({"description": "a\x00b"}, "description: "),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_written(options: dict[str, Any], words: str) -> None:
    app = Horai("shop")

    with pytest.raises(Invalid) as refused:
        app.queue("mail", **options)

    assert "The queue 'mail': " in str(refused.value)
    assert words in str(refused.value)
    assert not app.queues


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("max_concurency", "Did you mean 'max_concurrency'?"),
        ("concurrency", "Did you mean 'max_concurrency'?"),
        ("paused", "horai queues pause mail"),
        ("rate_limit", 'rate="100/s"'),
        ("colour", "Known: description, max_concurrency"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_one_that_was_meant(option: str, hint: str) -> None:
    app: Any = Horai("shop")

    with pytest.raises(TypeError, match=f"app.queue has no option '{option}'") as refused:
        app.queue("mail", **{option: 1})

    assert hint in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 65, "all/mail", 5, None])
def test_a_name_that_no_queue_can_have_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="queue"):
        Horai("shop").queue(name)


def test_the_same_queue_is_declared_once_in_an_application() -> None:
    app = Horai("shop")
    app.queue("mail")

    with pytest.raises(Invalid, match="The queue 'mail' is declared twice in the application 'shop'"):
        app.queue("mail", max_concurrency=5)


def test_a_job_a_workflow_and_a_reconciler_take_the_object_or_the_name() -> None:
    app = Horai("shop")
    mail = app.queue("mail", max_concurrency=5)
    send = app.job(name="send", queue=mail)(lambda: None)
    app.job(name="named", queue="mail")(lambda: None)
    flow = app.workflow("nightly", [Node(send)], queue=mail)

    @app.reconcile(job=send, every="5m", queue=mail)
    def wanted() -> list[Any]:
        return []

    assert [job.declaration.document["queue"] for job in app.jobs.values()] == ["mail", "mail", "mail"]
    assert flow.written.document["queue"] == "mail"
    assert (isinstance(mail, Queue), mail.name, repr(mail), dict(app.queues)) == (
        True,
        "mail",
        "Queue(name='mail')",
        {"mail": mail},
    )


def test_another_application_with_the_same_jobs_has_their_queues_too() -> None:
    app, copy = shop_of(max_concurrency=5), Horai("copy")

    copy.take_jobs(app, but="other")

    assert dict(copy.queues) == dict(app.queues)
