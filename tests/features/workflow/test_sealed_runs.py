"""Runs with nodes of encrypted jobs, without a key: nothing is stored as it is, and nothing is tried without a pause."""

import json
import os
from dataclasses import replace

import flows
import make
import pytest

from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import Conflict
from horai.core.outcome import Complete
from horai.db import claims
from horai.db.pool import Platform
from horai.features.workflow import run_store
from horai.features.workflow.definition import WorkflowNode
from horai.features.workflow.run_store import NewNodes, RunStart
from horai.features.workflow.runs import advance_runs, start_run
from horai.features.workflow.store import NodeRow
from horai.operations.keyring import Keyring

CANARY = "hunter2canary"
KEYRING = Keyring((KeyEncryptionKey(os.urandom(32)),))


async def test_C42_an_encrypted_job_never_gets_the_payload_of_a_run_as_it_is(url: str, connection: Platform):
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


async def test_C42_a_run_that_waits_for_a_key_is_not_busy(url: str, connection: Platform):
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
