"""Seed 000 by SQL: the function decides and writes what operations/put.py would."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import make
import pytest
from databases import Superuser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.core.errors import NotFound
from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.put import PutOptions
from horai.db import claims, jobs
from horai.db.instances import InsertTarget
from horai.operations import instances
from horai.operations.put import Put, put_all
from horai.operations.scope import Scope

NOW = datetime.now(UTC).replace(microsecond=0)
PAST, SOON, LATER = NOW - timedelta(hours=1), NOW + timedelta(hours=1), NOW + timedelta(hours=2)
KEY = "article:42"
PYTHON, SQL = "python", "sql"
CALL = "select * from horai.put_instance($1, $2, $3, $4, $5, $6)"


@dataclass(frozen=True, slots=True)
class Wish:
    """A put."""

    at: datetime = LATER
    payload: str | None = None
    version: int | None = None
    again: bool = False


@dataclass(slots=True)
class Twins:
    """The same key of two jobs: all puts and cancels of the one go through Python, those of the other through SQL."""

    scope: Scope
    connection: Superuser
    node: int
    key: str = KEY

    async def put(self, wish: Wish) -> tuple[Any, Any]:
        """Put by Python and by SQL. Return both answers: decision, state, and the instance of the key that is meant."""
        place = await self._place(PYTHON)
        put = Put(self.key, wish.at, wish.payload, PutOptions(wish.version, wish.again))
        async with self.connection.transaction():
            (answer,) = await put_all(self.connection, place, [put])
        instance = await instances.read_instance(self.scope, answer.instance_id)
        said = await self.connection.fetchrow(CALL, SQL, self.key, wish.at, wish.payload, wish.version, wish.again)
        assert said is not None
        chosen = [await self._position(PYTHON, answer.instance_id), await self._position(SQL, said["instance_id"])]
        assert said["execute_time"] == (await instances.read_instance(self.scope, said["instance_id"])).execute_time
        python = (answer.verdict.value, instance.state.name, chosen[0])
        return python, (said["decision"], said["state"], chosen[1])

    async def cancel(self) -> tuple[Any, Any]:
        """Cancel by Python and by SQL. Return the state of each; None if there was nothing to cancel."""
        try:
            python = (await instances.cancel_by_key(self.scope, PYTHON, self.key)).state.name
        except NotFound:
            python = None
        said = await self.connection.fetchrow("select * from horai.cancel_instance($1, $2)", SQL, self.key)
        return python, said and said["state"]

    async def settle(self, decision: "Complete | RetryAt | Bury | Release | None") -> None:
        """Claims what is due of either, and brings it to an end of this kind; none: it goes on running."""
        for claimed in await make.claim(self.connection, self.node):
            match decision:
                case None:
                    pass
                case Complete():
                    await claims.finish_if_running(self.connection, self.node, [(claimed.held, decision)])
                case RetryAt():
                    await claims.fail_if_running(self.connection, [(claimed.held, decision)])
                case Bury():
                    await claims.bury_if_running(self.connection, [(claimed.held, decision)])
                case Release():
                    await claims.release_if_running(self.connection, [(claimed.held, decision)])

    async def block(self) -> None:
        """As a workflow would leave them."""
        await self.connection.execute(
            "update horai.instance_live set state = 6, lane = 0 where key = $1 and state = 0", self.key
        )

    async def stories(self) -> tuple[Any, Any]:
        """Everything the store says of either."""
        return await self._story(PYTHON), await self._story(SQL)

    async def _place(self, name: str) -> InsertTarget:
        job = await jobs.find_job(self.connection, 1, name)
        assert job is not None
        return InsertTarget(job.id, job.tenant_id, job.lane_now, job.payload)

    async def _chain(self, name: str) -> dict[int, int]:
        """The instances of a key in the order of their birth."""
        born = await self.connection.fetch(
            "select i.instance_id from horai.job_instance i join horai.job j on j.id = i.job_id"
            " where j.name = $1 and i.key = $2 order by i.created_at",
            name,
            self.key,
        )
        return {row["instance_id"]: position for position, row in enumerate(born)}

    async def _position(self, name: str, instance_id: int) -> int:
        return (await self._chain(name))[instance_id]

    async def _story(self, name: str) -> list[Any]:
        chain = await self._chain(name)
        story: list[Any] = []
        for table in ("instance_live", "instance_history"):
            found = await self.connection.fetch(
                f"select to_jsonb(t) as row from horai.{table} t where id = any ($1)", list(chain)
            )
            story += sorted((_told(json.loads(row["row"]), chain) for row in found), key=repr)
        events = await self.connection.fetch(
            "select instance_id, seq, kind, data from horai.instance_event where instance_id = any ($1)", list(chain)
        )
        story += sorted(((chain[e["instance_id"]], e["seq"], e["kind"], _data(e["data"])) for e in events), key=repr)
        letters = await self.connection.fetch(
            "select instance_id, replay_status from horai.dead_letter where instance_id = any ($1)", list(chain)
        )
        return [*story, *sorted((chain[row["instance_id"]], row["replay_status"]) for row in letters)]


OWN = {"id", "job_id", "slot", "shard", "created_at", "updated_at", "claimed_at", "finished_at", "node", "claim", "due"}
"""The fields that differ between any two instances."""


def _told(row: dict[str, Any], chain: dict[int, int]) -> list[Any]:
    due = row.get("due")
    told = {name: value for name, value in row.items() if name not in OWN}
    told["lane"] = row["lane"] > 0
    told["supersedes"] = chain.get(row["supersedes"])
    told["is_due_later"] = due is not None and due > row["execute_time"]
    return sorted((name, _steady(json.dumps(value))) for name, value in told.items())


def _data(text: str | None) -> Any:
    data = json.loads(text) if text else {}
    return {name: _steady(json.dumps(value)) for name, value in data.items() if name not in {"idemKey", "worker"}}


def _steady(text: str) -> str:
    """Replace a time that the test did not set: it comes from the clock, which no two statements read alike."""
    asked = {json.dumps(at.isoformat()) for at in (PAST, SOON, LATER)}
    return "a time" if re.match(r'"\d{4}-\d\d-\d\dT', text) and text not in asked else text


async def twins_of(scope: Scope, connection: Superuser) -> Twins:
    for name in (PYTHON, SQL):
        await make.job(scope, name, payload={"of": "the job"})
    return Twins(scope, connection, await make.node(connection))


GIVEN: dict[str, Callable[[Twins, int | None], Awaitable[object]]] = {}


def given_state(prepare: Callable[[Twins, int | None], Awaitable[object]]) -> None:
    GIVEN[prepare.__name__] = prepare


@given_state
async def unknown(twins: Twins, version: int | None) -> None:
    pass


@given_state
async def waiting(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(SOON, "1", version))


@given_state
async def blocked(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(SOON, "1", version))
    await twins.block()


@given_state
async def runs(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(PAST, "1", version))
    await twins.settle(None)


@given_state
async def failed(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(PAST, "1", version))
    await twins.settle(RetryAt(timedelta(hours=5), "X", "x"))


@given_state
async def succeeded(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(PAST, "1", version))
    await twins.settle(Complete())


@given_state
async def died(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(PAST, "1", version))
    await twins.settle(Bury("X", "x"))


@given_state
async def was_cancelled(twins: Twins, version: int | None) -> None:
    await twins.put(Wish(PAST, "1", version))
    await twins.cancel()


@pytest.mark.parametrize("state", GIVEN)
async def test_A5_A6_A9_A10_both_ways_decide_and_write_the_same(url: str, connection: Superuser, state: str):
    """Every state and version that a key may have, and every put that may meet it."""
    async with make.scope(url) as scope:
        twins = await twins_of(scope, connection)
        for had, wished, again in product((None, 5), (None, 4, 5, 6), (False, True)):
            twins.key = f"{had}:{wished}:{again}"
            payload = None if again else '{"n": 2}'
            await GIVEN[state](twins, had)

            python, sql = await twins.put(Wish(LATER, payload, wished, again))

            assert python == sql, twins.key
            stories = await twins.stories()
            assert stories[0] == stories[1], twins.key


@pytest.mark.parametrize("state", GIVEN)
async def test_both_ways_ignore_a_put_with_an_equal_version_time_and_payload(
    url: str, connection: Superuser, state: str
):
    async with make.scope(url) as scope:
        twins = await twins_of(scope, connection)
        for at, payload, again in product((SOON, PAST), ("1", "2", None), (False, True)):
            twins.key = f"{at}:{payload}:{again}"
            await GIVEN[state](twins, 5)
            before = await twins.stories()

            python, sql = await twins.put(Wish(at, payload, 5, again))

            after = await twins.stories()
            assert (python, after[0]) == (sql, after[1]), twins.key
            had = SOON if state in {"waiting", "blocked"} else PAST
            if before[0] and at == had and payload != "2" and not again:
                assert (python[0], after) == ("IGNORED", before)


wishes = st.builds(
    Wish,
    st.sampled_from([PAST, PAST, SOON, LATER]),
    st.sampled_from([None, '{"n": 1}']),
    st.sampled_from([None, None, 1, 2, 3]),
    st.booleans(),
)
ends = st.sampled_from(
    [
        None,
        Complete(),
        RetryAt(timedelta(hours=5), "X", "x"),
        Bury("X", "x"),
        Release(),
        Release(timedelta(hours=1), True),
    ]
)
deeds: st.SearchStrategy[Any] = st.one_of(wishes, wishes, ends, st.just("cancel"), st.just("block"))


def test_A12_A16_any_history_of_a_key_reads_the_same_both_ways(url: str, connection: Superuser, runner: asyncio.Runner):
    opened = make.scope(url)
    twins = runner.run(_opened(opened, connection))
    seen = set[str]()

    async def play(history: list[Any]) -> None:
        twins.key = f"key {len(seen)} {id(history)}"
        seen.add(twins.key)
        for deed in history:
            match deed:
                case Wish():
                    python, sql = await twins.put(deed)
                    assert python == sql
                case "cancel":
                    python, sql = await twins.cancel()
                    assert python == sql
                case "block":
                    await twins.block()
                case _:
                    await twins.settle(deed)
        stories = await twins.stories()
        await twins.cancel()
        assert stories[0] == stories[1]

    @settings(max_examples=examples(40), deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(deeds, min_size=2, max_size=14))
    def tell(history: list[Any]) -> None:
        runner.run(play(history))

    tell()
    runner.run(opened.__aexit__(None, None, None))


async def _opened(opened: Any, connection: Superuser) -> Twins:
    return await twins_of(await opened.__aenter__(), connection)
