"""The commands of docs/runbook.md, in their order, against nodes that are killed: from the alert to the take-over to the replay."""

import asyncio
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from databases import Superuser
from harness import Client, NodeProcess
from pages import ROOT
from receiver import Answer, Receiver
from runbook import Operator, first_commands, sections

from faults.cluster import Cluster, cluster, database_now, incarnation_of, is_balanced, shares, taken_over
from faults.outside import job_document, until
from horai.core.limits import SHARDS
from horai.features.alerts.rules import RuleKind

LEASE = 3.0
TAKE_OVER = LEASE + 2.0
MINUTE = 60.0
CORE, SLOW, BROKEN, LOW = 64, 40, 4, 3
PAGE_SINK = "https://events.example.com/horai"
BACKFILL = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "mode": "missing"}
REPLAYED = "select replayed_as as instance_id from horai.dead_letter where replay_status = 'REPLAYED'"
OF_STEPS = ("incident.", "dispatch.", "mode.", "recovery.", "sink.", "alert_", "dead_letters.")
BEFORE, FREEZE, TAKE, SPARE, REPLAY = sections()
"""The headings of the runbook, in their order."""


@dataclass
class Drill:
    """A cluster of two nodes, the systems around it, and an operator who knows the runbook."""

    nodes: Cluster
    receiver: Receiver
    connection: Superuser
    operator: Operator
    session: aiohttp.ClientSession
    accepted: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    killed_at: datetime | None = None

    @property
    def api(self) -> Client:
        return Client(self.operator.server, self.session)

    async def job(self, name: str, *answers: Answer, **fields: Any) -> None:
        self.receiver.on(f"/{name}", *answers)
        made = await self.api("POST", "/api/v1/jobs", job_document(name, self.receiver.url(f"/{name}"), **fields))
        assert made.status == 201, made.json

    async def enqueue(self, name: str, count: int) -> set[int]:
        made = await self.api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{}] * count})
        assert made.status == 200, made.json
        ids = {int(item["instanceId"]) for item in made.json["items"]}
        self.accepted[name] |= ids
        return ids

    async def states(self, ids: set[int]) -> Counter[str]:
        found = await self.connection.fetch("select state from horai.job_instance where instance_id = any($1)", [*ids])
        return Counter(row["state"] for row in found)

    async def until_ended(self, ids: set[int], state: str, what: str) -> None:
        async def have() -> bool:
            return await self.states(ids) == {state: len(ids)}

        await until(have, 30, what)

    async def leader(self) -> str:
        """The name of the node that evaluates rules and sends alerts and events."""
        return await self.connection.fetchval(
            "select node.name from horai.shard_lease lease join horai.node on node.incarnation = lease.node "
            "where lease.duty = 'trigger' and lease.shard = 0"
        )

    async def kill(self, *names: str) -> None:
        self.killed_at = await database_now(self.connection)
        for name in names:
            await self.nodes.kill(name)
        self.operator.server = next(iter(self.nodes.doors.values()), self.operator.server)

    async def seconds(self) -> float:
        """Seconds since the kill, by the clock of the database."""
        assert self.killed_at is not None
        return (await database_now(self.connection) - self.killed_at).total_seconds()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(hit.body) for hit in self.receiver.hits if hit.path == "/events"]

    def messages(self) -> list[tuple[float, Any]]:
        """The alerts of dead instances that fired, with their times."""
        told = [(hit.at, json.loads(hit.body)) for hit in self.receiver.hits if hit.path == "/alerts"]
        return [
            (at, each) for at, each in told if (each["type"], each["rule"]["name"]) == ("horai.alert.firing", "dead")
        ]

    async def until_told(self, count: int) -> None:
        async def is_told() -> bool:
            return sum(message["count"] for _, message in self.messages()) >= count

        await until(is_told, 30, f"{count} alerts have fired")

    async def until_level(self) -> None:
        """Return when the receiver of the events knows the state of every instance that has ended, and the sink its answers."""

        async def is_level() -> bool:
            shown = (await self.api("GET", "/api/v1/sinks/audit")).json
            return shown["behind"] == 0 and told_states(self.events()) == await ended_states(self.connection)

        await until(is_level, 30, "the receiver knows every state")


@asynccontextmanager
async def drill(place: Path, url: str, connection: Superuser) -> AsyncGenerator[Drill]:
    """Two nodes that share all shards, and what the runbook asks for before an incident."""
    async with Receiver() as receiver, aiohttp.ClientSession() as session:
        async with cluster(place, url, "one", "two", lease=LEASE) as nodes:
            await until(lambda: is_balanced(connection, 2), 4 * LEASE, "both nodes have shards")
            (nodes.place / "hook.url").write_text(receiver.url("/alerts"))
            for path in ("/alerts", "/events"):
                receiver.on(path, Answer(200))
            replaced = {PAGE_SINK: receiver.url("/events")}
            operator = Operator(nodes.place, url, nodes.doors["one"], replaced)
            for block in sections()[BEFORE]:
                await operator.types(block)
            yield Drill(nodes, receiver, connection, operator, session)


@pytest.mark.timeout(240)
async def test_C34_C35_C36_C63a_the_runbook_leads_from_the_alert_to_the_take_over_to_the_replay(
    short_place: Path, url: str, connection: Superuser
) -> None:
    async with drill(short_place, url, connection) as scene:
        took = await killed_under_load(scene)
        await frozen(scene, took)
        await resumed(scene, took)
        await replayed(scene, took)
        await reviewed(scene)
        accepted = set[int]().union(*scene.accepted.values())
        lost = len(accepted) - sum((await scene.states(accepted)).values())
        told = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in took.items())
        print(f"leases of {LEASE:g} s, after the kill: {told}; {lost} of {len(accepted)} lost", flush=True)
        assert lost == 0
        assert 0 < took["alert"] < took["frozen"] < 3 * MINUTE
        assert took["taken over"] <= TAKE_OVER
        assert took["core resumed"] < 10 * MINUTE
        assert took["recovered"] < 30 * MINUTE
        wanted = [command for name in (BEFORE, FREEZE, TAKE, REPLAY) for block in sections()[name] for command in block]
        assert scene.operator.typed == wanted, "every command of the page, in its order"


async def killed_under_load(scene: Drill) -> dict[str, float]:
    """The leader is killed while it runs calls, and a target begins to fail. The alert comes from the other node."""
    retry = {"maxRetry": 0}
    await scene.job("core", Answer(200), priority="core")
    await scene.job("slow", Answer(200, delay=1.0))
    await scene.job("clearing", Answer(503), retry=retry)
    await scene.job("report", Answer(200), priority="low", cron="0 0 * * *")
    leader = await scene.leader()
    dead = await incarnation_of(scene.connection, leader)
    before = await scene.enqueue("core", 5)
    await scene.until_ended(before, "SUCCESS", "core jobs run before the kill")
    await scene.enqueue("slow", SLOW)

    async def is_at_work() -> bool:
        return await scene.connection.fetchval(
            "select exists (select from horai.instance_live where state = 1 and node = $1)", dead
        )

    await until(is_at_work, 10, "the leader runs something")
    await scene.kill(leader)
    core, broken = await scene.enqueue("core", CORE), await scene.enqueue("clearing", BROKEN)
    assert scene.killed_at is not None
    done = await taken_over(scene.connection, dead, scene.killed_at, 4 * LEASE)
    assert done.in_flight > 0, "else nothing was under way"
    await scene.until_told(1)
    took = {"alert": scene.messages()[0][0] - scene.killed_at.timestamp()}
    took |= {"taken over": done.shards, "rescued": done.rescue}
    await scene.until_ended(core, "SUCCESS", "core jobs run without the dead node")
    took["core resumed"] = await scene.seconds()
    await scene.until_ended(broken, "DEAD", "the failing target has dead letters")
    await scene.until_told(BROKEN)
    return took


async def frozen(scene: Drill, took: dict[str, float]) -> None:
    see, freeze, record = sections()[FREEZE]
    health, incidents, alerts = await scene.operator.types(see)
    assert [node["name"] for node in health["nodes"]] == list(scene.nodes.doors)
    assert incidents["items"] == []
    assert {(alert["kind"], alert["job"]) for alert in alerts["items"]} == {("INSTANCE_DEAD", "clearing")}
    await scene.operator.types(freeze)
    opened, noted = await scene.operator.types(record)
    took["frozen"] = await scene.seconds()
    assert (opened["id"], opened["severity"], noted["closedAt"]) == ("1", "P1", None)
    refused = await scene.api("POST", "/api/v1/jobs/report/backfill", BACKFILL)
    assert (refused.status, refused.json["code"]) == (429, "SCH_429_RETRY_LIMITED")


async def resumed(scene: Drill, took: dict[str, float]) -> None:
    low = await scene.enqueue("report", LOW)
    see, force, record = sections()[TAKE]
    health, _, governor = await scene.operator.types(see)
    assert [node["name"] for node in health["nodes"]] == list(scene.nodes.doors)
    assert len(governor["holds"]) == 2
    await scene.operator.types(force)
    await scene.operator.types(record)
    core = await scene.enqueue("core", CORE)
    await scene.until_ended(core, "SUCCESS", "core jobs run while the rest is frozen")
    assert await scene.states(low) == {"INIT": LOW}
    one = await incarnation_of(scene.connection, next(iter(scene.nodes.doors)))
    for duty in ("dispatch", "trigger"):
        assert await shares(scene.connection, duty) == {one: SHARDS}


async def replayed(scene: Drill, took: dict[str, float]) -> None:
    """A receiver that forgets all it had learned knows every state again after the recovery."""
    recover, check, more, unfreeze, close = sections()[REPLAY]
    for name in ("core", "slow"):
        await scene.until_ended(scene.accepted[name], "SUCCESS", "calls of the dead node were repeated")
    await scene.until_level()
    known = list(dict.fromkeys(event["id"] for event in scene.events()))
    scene.receiver.hits.clear()
    scene.receiver.on("/clearing", Answer(200))
    [done] = await scene.operator.types(recover)
    took["recovered"] = await scene.seconds()
    assert done["status"] == "RECOVERY_COMPLETED"
    assert (done["resumed"], done["replayed"], done["dlqMoved"]) == (0, len(known), BROKEN)
    again = {row["instance_id"] for row in await scene.connection.fetch(REPLAYED)}
    assert len(again) == BROKEN
    await scene.until_ended(again, "SUCCESS", "dead letters run again")
    await scene.until_level()
    assert [event["id"] for event in scene.events()][: len(known)] == known, "the same events, in the same order"

    sinks, letters, verified, *stuck = await scene.operator.types(check)
    assert [(sink["name"], sink["behind"], sink["status"]) for sink in sinks["items"]] == [("audit", 0, "ACTIVE")]
    assert letters["items"] == []
    assert verified["holds"]
    assert [listed["items"] for listed in stuck] == [[], [], []]
    _, rest = await scene.operator.types(more)
    assert rest["replayed"] == 0
    low = scene.accepted["report"]
    assert await scene.states(low) == {"INIT": LOW}
    await scene.operator.types(unfreeze)
    await scene.until_ended(low, "SUCCESS", "low priority runs again")
    accepted = await scene.api("POST", "/api/v1/jobs/report/backfill", BACKFILL)
    assert accepted.status in (200, 201, 202), accepted.json
    closed, shown, health = await scene.operator.types(close)
    assert closed["closedAt"] == shown["closedAt"] is not None
    assert [action for action in health["actions"] if "FREEZE" in action["textSaid"]["code"]] == []


def told_states(events: list[dict[str, Any]]) -> dict[str, str]:
    """The last state of each instance that has ended, as a receiver knows it from its events."""
    last = {event["data"]["instanceId"]: event["data"]["state"] for event in events if event["data"].get("state")}
    return {instance: state for instance, state in last.items() if state in ("SUCCESS", "DEAD")}


async def ended_states(connection: Superuser) -> dict[str, str]:
    rows = await connection.fetch(
        "select instance_id, state from horai.job_instance where state in ('SUCCESS', 'DEAD')"
    )
    return {str(row["instance_id"]): row["state"] for row in rows}


async def reviewed(scene: Drill) -> None:
    """The incident and the audit log have every step, in order."""
    timeline = (await scene.api("GET", "/api/v1/incidents/1")).json["timeline"]
    assert [entry["kind"] for entry in timeline] == ["OPENED", "NOTE", "NOTE", "RECOVERED", "CLOSED"]
    assert [entry["note"] for entry in timeline if entry["kind"] != "RECOVERED"] == [
        "alert from the channel ops",
        "Low priority and backfills are frozen",
        "The standby has all shards, core jobs run",
        "Recovered; review on Monday",
    ]
    rows = (await scene.api("GET", "/api/v1/audit?limit=500")).json["items"]
    steps = [
        row["verb"] for row in reversed(rows) if row["actor"]["kind"] == "keyless" and row["verb"].startswith(OF_STEPS)
    ]
    assert steps == [
        "alert_channel.create", "alert_rule.create", "alert_rule.create", "alert_channel.test", "sink.create",
        "dispatch.freeze", "dispatch.freeze", "incident.open", "incident.note",
        "mode.enter", "incident.open", "mode.override", "mode.leave", "incident.close", "mode.override", "incident.note",
        "dead_letters.replay_matching", "recovery.complete", "sink.replay",
        "dispatch.unfreeze", "dispatch.unfreeze", "incident.close",
    ]  # fmt: skip


@pytest.mark.timeout(120)
async def test_C35_a_spare_node_of_the_runbook_takes_all_shards_if_no_node_is_live(
    short_place: Path, url: str, connection: Superuser
) -> None:
    [[command]] = sections()[SPARE]
    async with drill(short_place, url, connection) as scene:
        await scene.job("core", Answer(200, delay=0.5), priority="core")
        ids = await scene.enqueue("core", CORE)
        await scene.kill("one", "two")
        await scene.operator.tries("horai health", 1)
        words = shlex.split(command)
        assert words[:2] == ["horai", "node"]
        spare = NodeProcess(scene.nodes.place / "spare", url, *words[2:], *scene.nodes.flags)
        await asyncio.to_thread(spare.start)
        scene.nodes.nodes["spare"], scene.nodes.doors["spare"] = spare, spare.base

        async def has_all() -> bool:
            one = await incarnation_of(connection, "spare")
            return all([await shares(connection, duty) == {one: SHARDS} for duty in ("dispatch", "trigger")])

        await until(has_all, 2 * TAKE_OVER, "the spare node has all shards")
        print(f"leases of {LEASE:g} s: all shards {await scene.seconds():.1f} s after the last node", flush=True)
        await scene.until_ended(ids, "SUCCESS", "what the dead nodes had accepted runs")


@pytest.mark.timeout(120)
async def test_the_runbook_has_a_first_command_for_every_alert_and_each_of_them_works(
    short_place: Path, url: str, connection: Superuser
) -> None:
    rules = (ROOT / "deploy" / "prometheus" / "horai.rules.yml").read_text()
    first = first_commands()
    assert set(first) == {*RuleKind, *re.findall(r"- alert: (\w+)", rules)}
    async with drill(short_place, url, connection) as scene:
        await scene.operator.types(dict.fromkeys(first.values()))
