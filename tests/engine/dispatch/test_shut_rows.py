"""Rows of jobs whose host is shut are passed over by reads that are short, and are claimed when the host is back."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import make
import pytest
from failing_hosts import Hosts, open_breaker, run, with_bad_and_good
from stages import workbench

from horai.core.calls import Call, HttpTarget
from horai.core.circuit_breaker import FEWEST_RESULTS, FIRST_PAUSE, PROBES
from horai.core.outcome import NotSent, Outcome, Succeeded
from horai.db import claims
from horai.engine.dispatch.shut_rows import RESTS_A_READ, ROWS_A_READ
from horai.engine.executors.bulkhead import NOT_BUSY, BusyTime


class FullHost(Hosts):
    """Hosts that turn calls away as long as they are `down`."""

    BUSY = BusyTime(30.0, is_silent=True)

    def run(self, call: Call) -> Outcome:
        assert isinstance(call.target, HttpTarget)
        assert self.bench.gates is not None
        if call.target.url not in self.down:
            return super().run(call)
        self.calls.append(call)
        self.bench.gates.filled(call, self.BUSY)
        outcome = NotSent(timedelta(seconds=30))
        self.bench.gates.ended(call, outcome)
        return outcome


async def test_C60_other_hosts_of_the_same_lane_run_while_thousands_of_rows_of_an_open_host_are_due(url: str):
    async with workbench(url) as bench:
        _, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        waiting = await make.many(bench.scope, 8000, job="bad")
        await make.many(bench.scope, 30, job="good")

        await run(bench, dispatcher)

        assert hosts.called() == {"bad": FEWEST_RESULTS, "good": 30}
        touched = await bench.connection.fetchval(
            "select count(*) from horai.instance_live where id = any ($1) and fence > 0", waiting
        )
        assert touched <= bench.settings.claim_batch, "after the first claim, the rows are passed over"


async def test_C60_rows_that_were_passed_over_are_claimed_without_a_sweep_when_the_breaker_tries_again(url: str):
    async with workbench(url) as bench:
        clock, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 2000, job="bad")
        await run(bench, dispatcher)
        hosts.down.clear()

        clock.ahead += FIRST_PAUSE * 2
        await run(bench, dispatcher)

        assert hosts.called()["bad"] >= FEWEST_RESULTS + PROBES


async def test_a_row_that_becomes_due_during_the_read_is_not_passed_over(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        _, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 2000, job="bad")
        made: list[int] = []

        async def with_news(*arguments: Any) -> Any:
            found = await read(*arguments)
            if not made and found:
                made.extend(await make.many(bench.scope, 1, job="good"))
                early = "update horai.instance_live set due = $2 where id = any ($1) returning shard, lane"
                ((shard, lane),) = await bench.connection.fetch(early, made, make.LONG_AGO)
                dispatcher.wake(shard, lane, make.LONG_AGO)
            return found

        read = claims.shut_rows_ahead
        monkeypatch.setattr(claims, "shut_rows_ahead", with_news)
        await run(bench, dispatcher)

        assert made
        assert hosts.called()["good"] == 1


async def test_C60_one_read_passes_over_a_bounded_number_of_rows_however_many_scans_have_them(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    """The rows of other tenants wait while the dispatcher reads."""
    async with workbench(url) as bench:
        _, _, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 8000, job="bad")
        reads: list[tuple[int, int]] = []

        async def counted(connection: Any, positions: Sequence[Any], job_ids: Any, limits: Sequence[int]) -> Any:
            found = await read(connection, positions, job_ids, limits)
            reads.append((len(positions), sum(rows.passed for rows in found)))
            return found

        read = claims.shut_rows_ahead
        monkeypatch.setattr(claims, "shut_rows_ahead", counted)
        await run(bench, dispatcher)

        assert max(scans for scans, _ in reads) >= 32, "the rows are in many scans"
        assert max(passed for _, passed in reads) <= ROWS_A_READ
        assert sum(passed for _, passed in reads) >= 7000, "a scan goes on where its last read ended"


async def test_C60_cursors_go_back_after_a_rest_that_grows_with_the_time_that_passing_over_took(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    """Each breaker that tries again would otherwise have a million rows read once more."""
    async with workbench(url) as bench:
        clock, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 2000, job="bad")

        async def slow(*arguments: Any) -> Any:
            clock.ahead += FIRST_PAUSE * 0.45
            return await read(*arguments)

        read = claims.shut_rows_ahead
        monkeypatch.setattr(claims, "shut_rows_ahead", slow)
        begun = clock.ahead
        await run(bench, dispatcher)
        rest = (clock.ahead - begun) * RESTS_A_READ
        monkeypatch.setattr(claims, "shut_rows_ahead", read)
        hosts.down.clear()

        assert rest > FIRST_PAUSE * 1.5, "the breaker would try again before"
        clock.ahead += rest - 1.0
        await run(bench, dispatcher)
        assert hosts.called()["bad"] == FEWEST_RESULTS, "it rests"
        clock.ahead += 2.0
        await run(bench, dispatcher)
        assert hosts.called()["bad"] >= FEWEST_RESULTS + PROBES


async def test_C60_rows_of_a_full_host_are_passed_over_until_it_has_room(url: str):
    """Each of a million rows would otherwise be claimed and turned away, every minute."""
    async with workbench(url) as bench:
        clock, _, _ = await with_bad_and_good(bench)
        full = FullHost(bench)
        dispatcher = bench.dispatcher(**{"": full})
        waiting = await make.many(bench.scope, 8000, job="bad")
        await make.many(bench.scope, 30, job="good")
        await run(bench, dispatcher)

        assert full.called()["good"] == 30
        touched = await bench.connection.fetchval(
            "select count(*) from horai.instance_live where id = any ($1) and fence > 0", waiting
        )
        assert 0 < touched <= 2 * bench.settings.claim_batch, "after the first claim, the rows are passed over"
        assert bench.gates is not None
        assert [(held.host, held.state) for held in bench.gates.held_hosts()] == [("http://bad.test", "FULL")]

        before = full.called()["bad"]
        full.down.clear()
        clock.ahead += FullHost.BUSY.seconds
        await run(bench, dispatcher)
        assert full.called()["bad"] > before


async def test_C60_a_silent_host_has_room_as_soon_as_half_of_its_line_is_free(url: str):
    async with workbench(url) as bench:
        await with_bad_and_good(bench)
        full = FullHost(bench)
        dispatcher = bench.dispatcher(**{"": full})
        await make.many(bench.scope, 2000, job="bad")
        await run(bench, dispatcher)
        assert bench.gates is not None
        first, before = full.calls[0], full.called()["bad"]
        bench.gates.busy_of = lambda _: FullHost.BUSY

        full.down.clear()
        bench.gates.ended(first, Succeeded())
        assert [held.state for held in bench.gates.held_hosts()] == ["FULL"], "calls wait in line for it"
        bench.gates.busy_of = lambda _: NOT_BUSY
        bench.gates.ended(first, Succeeded())
        assert bench.gates.held_hosts() == ()
        await run(bench, dispatcher)
        assert full.called()["bad"] > before


async def test_C60_a_full_host_that_has_no_room_in_time_stays_full(url: str):
    """Without a look at its line, rows would be claimed and turned away each time that it was expected to have room."""
    async with workbench(url) as bench:
        clock, _, _ = await with_bad_and_good(bench)
        full = FullHost(bench)
        dispatcher = bench.dispatcher(**{"": full})
        await make.many(bench.scope, 2000, job="bad")
        await run(bench, dispatcher)
        assert bench.gates is not None
        before = full.called()["bad"]
        bench.gates.busy_of = lambda _: FullHost.BUSY

        clock.ahead += FullHost.BUSY.seconds
        await run(bench, dispatcher)
        assert full.called()["bad"] == before
        assert [held.state for held in bench.gates.held_hosts()] == ["FULL"]
