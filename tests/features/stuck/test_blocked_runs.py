"""Root causes of blocked workflow runs, in lists and in the run itself."""

import flows
import make
from databases import Superuser
from orchestra import Orchestra
from stages import workbench

from horai.db.pool import acquire
from horai.features.dead_letters import service as dead_letters
from horai.features.workflow import rerun as reruns
from horai.operations import stuck
from horai.operations.scope import Scope
from horai.operations.stuck import BlockedRun

LONG = {**flows.DIAMOND, "mail": ("report",)}


async def blocked(scope: Scope) -> list[BlockedRun]:
    async with scope.read() as connection:
        return await stuck.blocked_runs(connection, scope.tenant_id, 10)


async def test_a_diamond_with_two_failures_has_two_root_causes_and_every_blocked_node_points_to_them(url: str) -> None:
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope, LONG), Orchestra(bench)
        band.answer("left", "right")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()

        (found,) = await blocked(bench.scope)
        view = await reruns.read_run(bench.scope, "nightly", run)
        mail = await flows.instance_of(bench.connection, run, "mail")
        async with bench.scope.read() as connection:
            of_mail = await stuck.causes_of_instance(connection, mail)
        left = await flows.instance_of(bench.connection, run, "left")

    assert (found.run.id, found.run.workflow, found.waiting) == (run, "nightly", 2)
    assert [(cause.node, cause.blocks) for cause in found.causes] == [
        ("left", ("mail", "report")),
        ("right", ("mail", "report")),
    ]
    cause = found.causes[0]
    assert (cause.instance_id, cause.error_code, cause.error_msg, cause.has_letter) == (
        left,
        "BROKEN",
        "It broke.",
        True,
    )
    assert [each.node for each in view.causes] == ["left", "right"]
    assert {node.name: view.roots_of(node.name) for node in view.nodes} == {
        "load": [],
        "left": [],
        "right": [],
        "report": ["left", "right"],
        "mail": ["left", "right"],
    }
    assert [each.node for each in of_mail] == ["left", "right"]


async def test_after_a_rerun_the_root_cause_is_that_of_the_new_generation(url: str) -> None:
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope, LONG), Orchestra(bench)
        band.answer("left")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        band.answer("report")
        await reruns.rerun(bench.scope, "nightly", run, "left")
        await band.play()
        (below,) = await blocked(bench.scope)
        of_report = await flows.instance_of(bench.connection, run, "report")
        band.answer("load")
        await reruns.rerun(bench.scope, "nightly", run, "load")
        await band.play()

        (above,) = await blocked(bench.scope)

    assert [(cause.node, cause.instance_id, cause.blocks) for cause in below.causes] == [
        ("report", of_report, ("mail",))
    ]
    assert [(cause.node, cause.blocks) for cause in above.causes] == [("load", ("left", "mail", "report", "right"))]


async def test_a_discarded_dead_letter_leaves_the_rerun(url: str) -> None:
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("report")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        dead = await flows.instance_of(bench.connection, run, "report")
        letter = await bench.connection.fetchval("select id from horai.dead_letter where instance_id = $1", dead)
        before = await reruns.read_run(bench.scope, "nightly", run)
        await dead_letters.discard_letter(bench.scope, letter, None)

        (found,) = await blocked(bench.scope)
        after = await reruns.read_run(bench.scope, "nightly", run)

    assert [(cause.node, cause.has_letter, cause.blocks) for cause in found.causes] == [("report", False, ())]
    assert [cause.has_letter for cause in (*before.causes, *after.causes)] == [True, False]


async def test_runs_that_go_on_or_succeeded_and_those_of_others_are_not_listed(url: str, connection: Superuser) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        await flows.start(bench.scope, bench.connection, made)
        assert await blocked(bench.scope) == []
        await band.play()
        assert await blocked(bench.scope) == []
        band.answer("left")
        await flows.start(bench.scope, bench.connection, made)
        await band.play()

        assert len(await blocked(bench.scope)) == 1
        assert await blocked(make.of_tenant(bench.scope, other, "shop")) == []
        async with acquire(make.platform(bench.scope)) as every:
            assert await stuck.blocked_runs(every, other, 10) == []


async def test_a_list_leaves_out_the_sealed_error_text_of_an_encrypted_job(url: str) -> None:
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("left")
        await flows.start(bench.scope, bench.connection, made)
        await band.play()
        await bench.connection.execute("update horai.job set encrypted = true where name = 'left'")

        (found,) = await blocked(bench.scope)

    assert [(cause.error_code, cause.error_msg) for cause in found.causes] == [("BROKEN", None)]
