"""Slots that meet a run of their own job, whose node may have died: one at a time, and never none for ever."""

import asyncio
from datetime import datetime

import make
import pytest
from timeline import MINUTE, NOON, SECOND, Node, Timeline, timeline

pytestmark = pytest.mark.usefixtures("horai_server")

MINUTELY = "* * * * *"
FIRST, SECOND_SLOT, THIRD, FOURTH, FIFTH = (NOON + n * MINUTE for n in range(1, 6))


async def finish(time: Timeline, node: Node) -> None:
    """End the running instance; the one that waited for it may begin."""
    time.bench.executor.gate.set()
    await time.bench.settle()
    time.bench.executor.gate.clear()
    await node.step()


async def claimed_by_another(time: Timeline, node: Node, slot: datetime) -> int:
    """Make and release the slot, and claim it for another node, which will not live for long."""
    await time.move_to(slot)
    await node.trigger.step(time.now)
    await node.overlap_gate.step(time.now)
    mortal = await make.node(time.bench.connection, 90 * SECOND, "mortal")
    assert len(await make.claim(time.bench.connection, mortal)) == 1
    return mortal


async def most_at_once(time: Timeline) -> int:
    return (await time.bench.states()).get("RUNNING", 0)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_nomad_11052_two_nodes_let_one_of_several_slots_go(overlap: str):
    async with timeline(works=False) as time:
        await time.job(cron=MINUTELY, overlap=overlap)
        nodes = [time.node(), time.node()]
        for slot in (FIRST, SECOND_SLOT, THIRD):
            await time.move_to(slot)
            await asyncio.gather(*(node.trigger.step(time.now) for node in nodes))
            await asyncio.gather(*(node.overlap_gate.step(time.now) for node in nodes))
            await asyncio.gather(*(time.bench.until_idle(node.dispatcher) for node in nodes))
            assert await most_at_once(time) == 1

        assert await time.slots() == [FIRST, SECOND_SLOT, THIRD]


async def test_nomad_14505_a_retry_after_a_crash_still_holds_the_gate():
    """12:01 dies with its node at 12:02:30, is tried again a second later, and runs when 12:03 comes."""
    async with timeline(works=False) as time:
        await time.job(cron=MINUTELY, overlap="skip")
        node = time.node()
        await claimed_by_another(time, node, FIRST)
        await time.move_to(SECOND_SLOT)
        await node.step()
        assert await time.states() == [(FIRST, "RUNNING"), (SECOND_SLOT, "CANCELLED")]

        await time.pass_by(31 * SECOND)
        await node.step()
        assert (await time.states())[0] == (FIRST, "FAIL"), "its node is dead"
        await time.live(node, THIRD)

        assert await time.states() == [(FIRST, "RUNNING"), (SECOND_SLOT, "CANCELLED"), (THIRD, "CANCELLED")]
        assert [call.attempt for call in time.bench.executor.calls] == [2]
        await finish(time, node)
        await time.move_to(FOURTH)
        await node.step()
        assert [state for _, state in await time.states()] == ["SUCCESS", "CANCELLED", "CANCELLED", "RUNNING"]


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_apscheduler_423_a_run_that_died_does_not_close_the_gate_for_ever(overlap: str):
    async with timeline() as time:
        await time.job(cron=MINUTELY, overlap=overlap, retry={"maxLost": 0})
        node = time.node()
        await claimed_by_another(time, node, FIRST)

        await time.live(node, FIFTH)

        states = dict(await time.states())
        assert states[FIRST] == ("CANCELLED" if overlap == "replace" else "DEAD")
        assert states[SECOND_SLOT] == ("CANCELLED" if overlap == "skip" else "SUCCESS")
        assert [states[slot] for slot in (THIRD, FOURTH, FIFTH)] == ["SUCCESS"] * 3


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_graphile_worker_227_slots_behind_a_long_run_follow_the_overlap_rule(overlap: str):
    async with timeline(works=False) as time:
        await time.job(cron=MINUTELY, overlap=overlap)
        node = time.node()

        await time.live(node, FIFTH)

        first, *others = [state for _, state in await time.states()]
        match overlap:
            case "skip":
                assert [first, *others] == ["RUNNING"] + ["CANCELLED"] * 4
            case "queue":
                assert [first, *others] == ["RUNNING"] + ["INIT"] * 4
            case _:
                assert [first, *others] == ["CANCELLED"] * 4 + ["RUNNING"]
        for _ in range(5):
            assert await most_at_once(time) <= 1
            await finish(time, node)
        ran = [call.fire_time for call in time.bench.executor.calls]
        assert ran == ([FIRST] if overlap == "skip" else [FIRST, SECOND_SLOT, THIRD, FOURTH, FIFTH])
        assert set(await time.bench.states()) <= {"SUCCESS", "CANCELLED"}, "nothing is left over"
