"""The guards of a drill on an existing cluster: the health of the cluster, and the confirmation of its name."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from terminal import Terminal

from horai.cli.drills.kinds import DrillKind
from horai.cli.drills.outcome import DrillCounts, DrillLimits, promises
from horai.cli.drills.patroni import MOST_LAG, PatroniMember, PatroniView, faults_of, view_of
from horai.cli.drills.plan import DrillPlan
from horai.cli.drills.report import document, page, reports_of, write
from horai.cli.drills.scene import DrillResult

LEADER = PatroniMember("pg1", "leader", "running", 3, None, may_lead=True)
STANDBY = PatroniMember("pg2", "sync_standby", "streaming", 3, 0, may_lead=True)
HEALTHY = PatroniView("horai", (LEADER, STANDBY))
NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_healthy_cluster_has_no_fault_and_its_synchronous_standby_takes_over() -> None:
    other = replace(STANDBY, name="pg0", role="replica")

    assert faults_of(HEALTHY) == []
    assert replace(HEALTHY, members=(LEADER, other, STANDBY)).candidate == STANDBY
    assert HEALTHY.is_synchronous
    assert not replace(HEALTHY, members=(LEADER, other)).is_synchronous
    assert replace(HEALTHY, members=(LEADER, other, replace(STANDBY, may_lead=False))).candidate == other


@pytest.mark.parametrize(
    ("view", "fault"),
    [
        (replace(HEALTHY, members=(STANDBY,)), "it has no primary"),
        (replace(HEALTHY, members=(LEADER,)), "it has no standby that may take over"),
        (replace(HEALTHY, is_paused=True), "Patroni is paused"),
        (replace(HEALTHY, has_plan=True), "a switchover is scheduled"),
        (replace(HEALTHY, members=(replace(LEADER, state="starting"), STANDBY)), "pg1 is in the state 'starting'"),
        (
            replace(HEALTHY, members=(LEADER, replace(STANDBY, timeline=2))),
            "pg2 is on another timeline than the primary",
        ),
        (replace(HEALTHY, members=(LEADER, replace(STANDBY, lag=None))), "pg2 is an unknown number of bytes behind"),
        (replace(HEALTHY, members=(LEADER, replace(STANDBY, lag=MOST_LAG + 1))), f"pg2 is {MOST_LAG + 1} bytes behind"),
        (
            replace(HEALTHY, members=(LEADER, replace(STANDBY, may_lead=False))),
            "it has no standby that may take over",
        ),
    ],
)
def test_a_cluster_that_could_lose_by_a_move_is_not_healthy(view: PatroniView, fault: str) -> None:
    assert faults_of(view) == [fault]


def test_the_answer_of_patroni_is_read() -> None:
    told: dict[str, Any] = {
        "members": [
            {"name": "pg1", "role": "leader", "state": "running", "timeline": 3},
            {"name": "pg2", "role": "sync_standby", "state": "streaming", "timeline": 3, "lag": 0},
            {"name": "pg3", "role": "replica", "state": "running", "lag": "unknown", "tags": {"nofailover": True}},
        ],
        "pause": True,
        "scheduled_switchover": {"at": "2026-11-18T00:00:00Z"},
    }

    view = view_of("horai", told)

    assert view.members == (LEADER, STANDBY, PatroniMember("pg3", "replica", "running", None, None, may_lead=False))
    assert (view.is_paused, view.has_plan) == (True, True)


COUNTS = DrillCounts(10, 0, 10, (), 0, (), 0, 0, (), SECOND, SECOND, timedelta(0))


def test_an_existing_cluster_is_promised_only_what_the_drill_can_see_there() -> None:
    limits = DrillLimits(SECOND, timedelta(0), is_existing=True)

    assert [each.text for each in promises(COUNTS, limits)] == [
        "recovery time (RTO)",
        "recovery point (RPO)",
        "acknowledged instances lost",
        "repeated calls outside work in flight",
    ]


def result(at: datetime = NOW, kind: DrillKind = DrillKind.PRIMARY, cluster: str | None = None) -> DrillResult:
    limits = DrillLimits(SECOND, timedelta(0), is_existing=cluster is not None)
    kept = tuple(promises(COUNTS, limits))
    move = None if cluster is None else "switchover"
    return DrillResult(kind, DrillPlan(limits), "synchronous", at, COUNTS, kept, (), cluster, move)


def test_the_report_of_an_existing_cluster_names_it_and_the_move() -> None:
    told = document(result(cluster="shop-db"))

    assert (told["cluster"], told["move"], told["leaseSeconds"]) == ("shop-db", "switchover", None)
    assert "the existing cluster shop-db" in page(result(cluster="shop-db"))
    assert "dead letters" not in page(result(cluster="shop-db"))
    assert (document(result())["cluster"], document(result())["leaseSeconds"]) == (None, 8.0)


def test_only_the_newest_reports_of_the_kind_are_kept(tmp_path: Path) -> None:
    other = tmp_path / "2026-01-01-primary-notes.md"
    other.write_text("kept by hand")
    node = write(result(NOW - timedelta(days=90), DrillKind.NODE), tmp_path)
    made = [write(result(NOW - timedelta(days=days)), tmp_path) for days in (60, 30, 0, 0, 0)]

    last = write(result(NOW), tmp_path, keep=3)

    assert reports_of(tmp_path, DrillKind.PRIMARY) == [made[3], made[4], last]
    assert last.name == "2026-11-17-primary-4.md"
    kept = {each.stem for each in (made[3], made[4], last, node)}
    assert {each.stem for each in tmp_path.glob("*.json")} == kept
    assert other.exists()


@asynccontextmanager
async def listening(routes: Sequence[web.RouteDef]) -> AsyncGenerator[str]:
    """A server with these routes; its address."""
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def small_patroni(told: dict[str, Any]) -> AsyncGenerator[tuple[str, list[str]]]:
    """A REST API that answers as Patroni does, and records what it is asked to change."""
    moves: list[str] = []

    async def on_patroni(_: web.Request) -> web.Response:
        return web.json_response({"patroni": {"scope": "shop-db"}})

    async def on_cluster(_: web.Request) -> web.Response:
        return web.json_response(told)

    async def on_move(request: web.Request) -> web.Response:
        moves.append(request.path)
        return web.Response(status=412)

    routes = [web.get("/patroni", on_patroni), web.get("/cluster", on_cluster), web.post("/{move}", on_move)]
    async with listening(routes) as address:
        yield address, moves


TWO = {
    "members": [
        {"name": "pg1", "role": "leader", "state": "running", "timeline": 3},
        {"name": "pg2", "role": "sync_standby", "state": "streaming", "timeline": 3, "lag": 0},
    ]
}


@pytest.mark.parametrize("confirmed", [(), ("--confirm", "shop")])
async def test_a_cluster_that_is_not_confirmed_by_its_name_is_left_alone(confirmed: tuple[str, ...]) -> None:
    async with small_patroni(TWO) as (address, moves):
        ended = await asyncio.to_thread(Terminal(), "drill", "primary", "--patroni", address, *confirmed)

    assert (ended.code, moves) == (2, [])
    assert "error: The drill moves the primary of the existing cluster shop-db. Writes pause meanwhile." in ended.err
    assert "hint: Confirm it with the name of the cluster: --confirm shop-db." in ended.err


async def test_a_cluster_that_is_not_healthy_is_left_alone() -> None:
    async with small_patroni({**TWO, "pause": True}) as (address, moves):
        words = ("drill", "primary", "--patroni", address, "--confirm", "shop-db")
        ended = await asyncio.to_thread(Terminal(), *words)

    assert (ended.code, moves) == (1, [])
    assert "error: The cluster shop-db is not healthy: Patroni is paused." in ended.err


async def test_a_cluster_whose_nodes_do_not_answer_is_left_alone() -> None:
    async with small_patroni(TWO) as (address, moves):
        words = ("drill", "primary", "--patroni", address, "--confirm", "shop-db", "--server", "http://127.0.0.1:9")
        ended = await asyncio.to_thread(Terminal(), *words)

    assert (ended.code, moves) == (1, [])
    assert "error: http://127.0.0.1:9 does not answer" in ended.err


async def test_a_cluster_with_a_node_that_is_not_healthy_is_left_alone() -> None:
    asked: list[str] = []

    async def on_health(_: web.Request) -> web.Response:
        return web.json_response({"status": "DEGRADED", "reasons": [{"text": "The loop janitor is overdue."}]})

    async def on_write(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({}, status=500)

    routes = [web.get("/api/v1/scheduler/health", on_health), web.post("/{path:.*}", on_write)]
    async with small_patroni(TWO) as (address, moves), listening(routes) as node:
        words = ("drill", "primary", "--patroni", address, "--confirm", "shop-db", "--server", node)
        ended = await asyncio.to_thread(Terminal(), *words)

    assert (ended.code, moves, asked) == (1, [], [])
    assert f"error: {node} is not healthy: The loop janitor is overdue." in ended.err


def test_a_patroni_that_does_not_answer_is_named() -> None:
    ended = Terminal()("drill", "primary", "--patroni", "http://127.0.0.1:9", "--confirm", "shop-db")

    assert ended.code == 1
    assert ended.err.startswith("error: No Patroni answers: http://127.0.0.1:9: ClientConnectorError")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("node", "--patroni", "http://db1:8008"),
            "error: A drill of the node is not available on an existing cluster.",
        ),
        (("standby", "--patroni", "http://db1:8008"), "error: A drill of the standby is not available"),
        (("zone", "--patroni", "http://db1:8008"), "error: A drill of the zone is not available"),
        (("primary", "--confirm", "x"), "error: Invalid value for '--confirm': only with --patroni"),
        (("primary", "--patroni", "http://db1:8008", "--asynchronous"), "error: Invalid value for '--asynchronous'"),
        (("primary", "--patroni", "http://db1:8008", "--lease-ttl", "3s"), "error: Invalid value for '--lease-ttl'"),
        (("primary", "--patroni", "http://db1:8008", "--kind", "kill"), "error: Invalid value for '--kind'"),
        (("primary", "--patroni", "db1"), "error: 'db1' is not the address of a server."),
    ],
)
def test_a_drill_that_cannot_run_on_an_existing_cluster_is_refused_with_the_reason(
    words: tuple[str, ...], line: str
) -> None:
    ended = Terminal()("drill", *words)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(line)
