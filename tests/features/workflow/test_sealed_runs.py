"""Runs with nodes of encrypted jobs, without a key: nothing is stored as it is, and nothing is tried without a pause."""

import json
import os
from dataclasses import replace

import flows
import make
import pytest

from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import Conflict
from horai.core.node_results import branch_text, skip_text
from horai.core.outcome import Complete
from horai.core.sealed_values import SealedColumn
from horai.db import claims
from horai.db.pool import Platform
from horai.features.workflow import maps, run_store
from horai.features.workflow.definition import WorkflowNode
from horai.features.workflow.run_store import NewNodes, RunStart
from horai.features.workflow.runs import advance_runs, start_run
from horai.features.workflow.store import NodeRow
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob, SealedText, open_text, seal_text

CANARY = "hunter2canary"
KEYRING = Keyring((KeyEncryptionKey(os.urandom(32)),))


async def test_C42c_an_encrypted_job_never_gets_the_payload_of_a_run_as_it_is(url: str, connection: Platform):
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=KEYRING)
        job = await make.job(scope, "seal", encrypted=True)
        made = await flows.workflow(scope, {"seal": ()})
        start = RunStart(10**6, made.job.created_at, json.dumps({"card": CANARY}))
        with pytest.raises(Conflict, match="no encryption key"):
            await start_run(connection, made.job.id, start)
        assert await connection.fetchval("select count(*) from horai.workflow_run") == 0

        own = NodeRow(WorkflowNode("seal", "seal", (), start.payload), job.id, is_sealed=True)
        with pytest.raises(RuntimeError, match="was not sealed"):
            await run_store.make_nodes(connection, NewNodes(start, [own], frozenset({"seal"})))
        bare = replace(own, node=replace(own.node, payload=None))
        async with connection.transaction():
            await run_store.insert_run(connection, made.row, start)
            await run_store.make_nodes(connection, NewNodes(start, [bare], frozenset({"seal"})))
        assert await connection.fetchval("select payload from horai.instance_live where job_id = $1", job.id) is None


async def test_C42c_a_run_that_waits_for_a_key_is_not_busy(url: str, connection: Platform):
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=KEYRING)
        await make.job(scope, "seal", encrypted=True)
        run = await flows.start(scope, connection, await flows.workflow(scope, {"load": (), "seal": ("load",)}))
        (claimed,) = await make.claim(connection, await make.node(connection))
        await claims.finish_if_free(connection, [(claimed.held, Complete('{"token": 1}'))])

        waiting = await advance_runs(connection, [run])

        assert (waiting.woken, waiting.busy, waiting.running) == ([], set(), {run})
        assert (await flows.states(connection, run))["seal"] == "BLOCKED"
        (released,) = (await advance_runs(connection, [run], KEYRING)).woken
        payload = await connection.fetchval("select payload from horai.instance_live where id = $1", released.id)
        assert set(json.loads(payload)) == {"$enc", "k", "n", "c"}


@pytest.mark.parametrize(("result", "after"), [(skip_text(CANARY), "SKIPPED"), (branch_text([], None), "SKIPPED")])
async def test_C42c_a_sealed_direction_waits_for_the_key_and_is_obeyed_then(
    url: str, connection: Platform, result: str, after: str
):
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=KEYRING)
        for name in ("seal", "child"):
            await make.job(scope, name, encrypted=True)
        run = await flows.start(scope, connection, await flows.workflow(scope, {"seal": (), "child": ("seal",)}))
        (claimed,) = await make.claim(connection, await make.node(connection))
        own = SealedJob(scope.tenant_id, "seal")
        sealed = await seal_text(connection, KEYRING, own, SealedColumn.RESULT, result)
        await claims.finish_if_free(connection, [(claimed.held, Complete(sealed))])

        waiting = await advance_runs(connection, [run])

        assert (waiting.woken, waiting.busy, waiting.running) == ([], set(), {run})
        assert (await flows.ends(connection, run))["child"] == "BLOCKED"
        assert (await advance_runs(connection, [run], KEYRING)).woken == []
        assert (await flows.ends(connection, run))["child"] == after
        assert await flows.phase(connection, run) == "SUCCESS"
        rows = await connection.fetch("select row_to_json(node)::text as row from horai.workflow_node node")
        assert not any(CANARY in row["row"] for row in rows), "the reason stays in the sealed result"


async def test_C42c_items_and_results_of_a_map_are_sealed_and_wait_for_the_key(url: str, connection: Platform):
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=KEYRING)
        for name in ("list", "each", "tell"):
            await make.job(scope, name, encrypted=True)
        graph, more = {"list": (), "each": ("list",), "tell": ("each",)}, {"each": {"map": {"over": "list"}}}
        run = await flows.start(scope, connection, await flows.workflow(scope, graph, more=more))

        async def finish(job: str, result: str) -> None:
            for claimed in await make.claim(connection, await make.node(connection)):
                own = SealedJob(scope.tenant_id, job)
                sealed = await seal_text(connection, KEYRING, own, SealedColumn.RESULT, result)
                await claims.finish_if_free(connection, [(claimed.held, Complete(sealed))])

        await finish("list", json.dumps([CANARY, CANARY]))
        waiting = await advance_runs(connection, [run])
        assert (waiting.woken, waiting.busy, waiting.running) == ([], set(), {run})
        assert len((await advance_runs(connection, [run], KEYRING)).woken) == 2
        await finish("each", json.dumps({"card": CANARY}))
        waiting = await advance_runs(connection, [run])
        assert (waiting.woken, waiting.busy, waiting.running) == ([], set(), {run})
        (released,) = (await advance_runs(connection, [run], KEYRING)).woken

        payload = await connection.fetchval("select payload from horai.instance_live where id = $1", released.id)
        own = SealedText(SealedJob(scope.tenant_id, "tell"), SealedColumn.PAYLOAD, payload)
        assert json.loads(await open_text(connection, KEYRING, own)) == {"parents": {"each": [{"card": CANARY}] * 2}}
        for table in ("workflow_node", "workflow_item", "instance_live", "instance_history"):
            rows = await connection.fetch(f"select row_to_json(one)::text as row from horai.{table} one")
            assert rows
            assert not any(CANARY in row["row"] for row in rows), table


async def test_C42c_a_map_that_waits_for_a_key_is_not_decided_on_again_at_once(
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(maps, "MADE_AT_ONCE", 1)
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=KEYRING)
        await make.job(scope, "each", encrypted=True)
        graph, more = {"list": (), "each": ("list",)}, {"each": {"map": {"over": "list"}}}
        run = await flows.start(scope, connection, await flows.workflow(scope, graph, more=more))
        (claimed,) = await make.claim(connection, await make.node(connection))
        await claims.finish_if_free(connection, [(claimed.held, Complete("[1, 2, 3]"))])

        waiting = await advance_runs(connection, [run])
        assert (waiting.woken, waiting.unfilled, waiting.running) == ([], set(), {run})
        first = await advance_runs(connection, [run], KEYRING)
        assert (len(first.woken), first.unfilled) == (1, {run})
        waiting = await advance_runs(connection, [run])
        assert (waiting.woken, waiting.unfilled, waiting.running) == ([], set(), {run})
