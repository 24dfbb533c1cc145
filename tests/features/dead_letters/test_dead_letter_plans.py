"""Queries of dead letters use an index, however many there are."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from databases import fresh_database

from horai.db.catalog import sql
from horai.db.instance_queries import LAST
from horai.db.pool import Dedicated
from horai.embedded import EmbeddedPostgres

LETTERS = 100_000
FILL = f"""
insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'q', 2, '');
insert into horai.job (tenant_id, name, lane_id, definition) select 1, 'j' || n, 1, '{{}}' from generate_series(1, 500) n;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state)
select n, 1 + n % 500, at, at, at, -n, at, at, at, 1, 1, 1, 6, 6, 6, 4
from (select n, timestamptz '2026-03-02 09:00Z' - n * interval '1 second' as at from generate_series(1, {LETTERS}) n) r;
insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code, tags, fingerprint, replay_status, created_at)
select 1, 1 + n % 500, n, 'HTTP_' || n % 300, array['transient_error', 'own-' || n % 1000], md5((n % 2000)::text),
    case when n % 100 = 0 then 'NEW' else 'REPLAYED' end, timestamptz '2026-03-02 09:00Z' - n * interval '1 second'
from generate_series(1, {LETTERS}) n;
"""
UNTIL = datetime(2026, 4, 1, tzinfo=UTC)
FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def only(**given: Any) -> tuple[Any, ...]:
    """The filter, with these members."""
    names = ("job", "tag", "code", "fingerprint", "status", "instance", "since", "until")
    return tuple(given.get(name) for name in names)


LISTS = {
    "all": (only(), 200),
    "job": (only(job=7), 400),
    "tag": (only(tag="own-7"), 400),
    "code": (only(code="HTTP_7"), 1_000),
    "fingerprint": (only(fingerprint="c4ca4238a0b923820dcc509a6f75849b"), 200),
    "status": (only(status="NEW"), 2_000),
    "instance": (only(instance=4_711), 1),
}
"""Each filter, and how many letters one scan may meet; a hundred are asked for."""


@pytest.fixture(scope="module")
def grown(postgres: EmbeddedPostgres) -> Iterator[str]:
    """100,000 letters, of which 1,000 are NEW."""

    async def fill(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(FILL)
        await connection.execute("analyze")
        await connection.close()

    with fresh_database(postgres) as url:
        asyncio.run(fill(url))
        yield url


async def met(url: str, statement: str, *arguments: Any) -> float:
    """Return the number of letters, or of instances that died, that the busiest scan met."""
    connection: Dedicated = await asyncpg.connect(url, server_settings={"plan_cache_mode": "force_custom_plan"})
    try:
        told = await connection.fetchval(f"explain (analyze, timing off, format json) {sql(statement)}", *arguments)
    finally:
        await connection.close()
    scans = [scan for scan in _scans(json.loads(told)[0]["Plan"]) if scan["Relation Name"] != "job"]
    assert scans
    return max(scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) for scan in scans)


def _scans(node: Any) -> Iterator[Any]:
    if "Relation Name" in node:
        yield node
    for below in node.get("Plans", ()):
        yield from _scans(below)


@pytest.mark.parametrize("name", LISTS)
async def test_C18_a_page_of_letters_is_read_by_an_index(grown: str, name: str) -> None:
    given, bound = LISTS[name]

    assert await met(grown, "list_letters", 1, *given, *LAST, 100) <= bound
    assert await met(grown, "list_letters_upwards", 1, *given, FIRST, 0, 100) <= bound
    assert await met(grown, "count_letters", 1, *given, 1_001) <= max(bound, 1_001)


async def test_C18_a_count_of_letters_reads_a_bounded_number_of_them(grown: str) -> None:
    assert await met(grown, "count_letters", 1, *only(status="DISCARDED"), 1_001) <= 1_001


@pytest.mark.parametrize("given", [only(until=UNTIL), only(tag="transient_error", until=UNTIL)], ids=["all", "tag"])
async def test_a_replay_does_not_pass_over_letters_that_are_done_with(grown: str, given: tuple[Any, ...]) -> None:
    assert await met(grown, "lock_replayable", 1, *given, FIRST, 0, 500, None) <= 1_000
    assert await met(grown, "count_replayable", 1, *given, 10_001, None) <= 1_000


async def test_the_letters_of_chosen_instances_are_found_by_them(grown: str) -> None:
    chosen = list(range(1, 501))

    assert await met(grown, "count_open_of", chosen) <= 500
    assert await met(grown, "lock_open_of", chosen) <= 500


async def test_a_discard_does_not_pass_over_letters_that_are_done_with(grown: str) -> None:
    assert await met(grown, "count_open", 1, *only(until=UNTIL), 10_001, None) <= 1_000
    assert await met(grown, "discard_open", 1, *only(tag="transient_error", until=UNTIL), 500, "why", None) <= 1_000
