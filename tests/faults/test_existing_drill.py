"""`horai drill primary --patroni` on the reference cluster: it moves the lead, measures, and leaves no job behind."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Client
from terminal import Terminal

from faults.cluster import cluster
from faults.patroni import patroni

SMALL = ("--rate", "40", "--calm", "2s", "--max-rto", "60s", "--confirm", "horai", "--json")


@pytest.mark.timeout(400)
async def test_a_drill_on_an_existing_cluster_moves_the_lead_measures_and_removes_its_job(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path / "state"))
    async with (
        patroni(short_place) as database,
        cluster(short_place, database.url, "one", "two", lease=8.0) as nodes,
        aiohttp.ClientSession() as session,
    ):
        doors = [word for door in nodes.doors.values() for word in ("--server", door)]
        members = [word for member in database.members.values() for word in ("--patroni", member["api"])]

        async def drill(*words: str) -> Any:
            command = ("drill", "primary", *members, *doors, "--directory", str(tmp_path / "drills"), *words)
            return await asyncio.to_thread(Terminal(), *command)

        told: list[Any] = []
        for kind in ("switchover", "failover"):
            before = await database.leader()
            ended = await drill(*SMALL, "--kind", kind)
            assert ended.code == 0, ended.err
            assert await database.leader() != before
            told.append(ended.json)
        before = await database.leader()
        async with session.patch(f"{database.members[before]['api']}/config", json={"pause": True}) as answer:
            assert answer.status == 200
        refused = await drill(*SMALL)
        jobs = (await Client(next(iter(nodes.doors.values())), session)("GET", "/api/v1/jobs")).json["items"]
        leader = next(name for name, role in (await database.roles()).items() if role == "leader")

    assert (refused.code, leader) == (1, before)
    assert "The cluster horai is not healthy: Patroni is paused." in refused.err
    assert [job["name"] for job in jobs] == []
    pages = sorted((tmp_path / "drills").glob("*-primary*.md"))
    assert len(pages) == 2
    for each, kind in zip(told, ("switchover", "failover"), strict=True):
        assert (each["kind"], each["cluster"], each["move"]) == ("primary", "horai", kind)
        assert (each["replication"], each["lost"], each["repeatedOutsideFlight"], each["rpoSeconds"]) == (
            "synchronous", 0, 0, 0,
        )  # fmt: skip
        assert each["acknowledged"] >= 2 * 2 * 40
        assert each["calls"] >= each["acknowledged"]
        assert 0 < each["rtoSeconds"] < 60
        assert "the old primary follows the new one" in [promise["promise"] for promise in each["promises"]]
        assert each["kept"]
    assert {json.loads(file.with_suffix(".json").read_text())["move"] for file in pages} == {"switchover", "failover"}
