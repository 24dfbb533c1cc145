"""Outcome tokens: the target of an attempt reports its outcome without a key, and can do nothing else."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import harness
import pytest
from harness import Client, Reply
from keys import KeyHolder, holder
from receiver import Answer, Receiver

from api import expect, given
from horai.core.outcome_tokens import outcome_token, read_outcome_token, token_for
from horai.db.pool import Platform


class Closed:
    """A server that serves no request without a key."""

    def __init__(self, stranger: Client, admin: KeyHolder, other: KeyHolder) -> None:
        self.stranger = stranger
        self.admin = admin
        self.other = other


@pytest.fixture(scope="module")
def closed(runner: asyncio.Runner, database: str) -> Iterator[Closed]:
    stack = AsyncExitStack()

    async def build() -> Closed:
        api = await stack.enter_async_context(harness.node(database, lease=timedelta(seconds=60)))
        root = await holder(api, "platform-admin")
        assert (await root("POST", "/api/v1/tenants", {"name": "acme"})).status == 201
        await given.loopback_targets(root, "default", "acme")
        keys = await holder(root, "admin", "default"), await holder(root, "admin", "acme")
        for key in keys:  # keys that the node knows keep working after wrong ones from the same address
            assert (await key("GET", "/api/v1/jobs")).status == 200
        return Closed(api, *keys)

    yield runner.run(build())
    runner.run(stack.aclose())


async def accepted(api: Client, receiver: Receiver, **fields: Any) -> tuple[Any, str]:
    """Return a RUNNING instance whose target has answered 202, and the token of its call."""
    job = await given.scripted(api, receiver, Answer(202), **{"timeout": "20s", **fields})
    instance = await given.running(api, receiver, job, "a")
    return instance, given.hits(receiver, job)[-1].headers["horai-outcome-token"]


async def report(ask: Client, instance: Any, token: str, *, as_bearer: bool = False, **more: Any) -> Reply:
    header = {"Authorization": f"Bearer {token}"} if as_bearer else {"Horai_Outcome_Token": token}
    body = {"fence": instance["fence"], "result": "SUCCESS", **more}
    return await ask("POST", f"/api/v1/instances/{instance['id']}/outcome", body, **header)


@pytest.mark.parametrize("as_bearer", [False, True])
async def test_C42a_a_target_reports_its_outcome_with_the_token_of_its_call(
    closed: Closed, receiver: Receiver, as_bearer: bool
) -> None:
    instance, token = await accepted(closed.admin, receiver)
    body = {"fence": instance["fence"], "result": "SUCCESS"}
    keyless = await closed.stranger("POST", f"/api/v1/instances/{instance['id']}/outcome", body)
    assert keyless.status == 401

    reply = await report(closed.stranger, instance, token, as_bearer=as_bearer, output={"rows": 3})

    assert reply.status == 200, reply.json
    assert (reply.json["instance"]["state"], reply.json["instance"]["result"]) == ("SUCCESS", {"rows": 3})
    assert (await report(closed.stranger, instance, token)).status == 200, "a repeat gets the same answer"


async def test_C42a_a_token_opens_no_other_route(closed: Closed, receiver: Receiver) -> None:
    _, token = await accepted(closed.admin, receiver)
    document = (await closed.admin("GET", "/openapi.json")).json
    reached: list[Any] = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if operation["x-role"] == ["public"] or path.endswith("/outcome"):
                continue
            for header in ({"Authorization": f"Bearer {token}"}, {"Horai_Outcome_Token": token}):
                reply = await closed.stranger(method.upper(), re.sub(r"\{\w+\}", "7", path), **header)
                if reply.status not in {401, 429}:
                    reached.append((method, path, reply.status))
    assert reached == []


async def test_C42a_the_document_says_which_operation_takes_a_token(closed: Closed) -> None:
    document = (await closed.admin("GET", "/openapi.json")).json
    taking = [
        (method, path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if {"outcomeToken": []} in operation["security"]
    ]
    assert taking == [("post", "/api/v1/instances/{instance}/outcome")]
    scheme = document["components"]["securitySchemes"]["outcomeToken"]
    assert scheme == {"type": "apiKey", "in": "header", "name": "Horai-Outcome-Token"}


async def test_C42a_a_token_for_another_instance_fence_tenant_or_time_is_refused(
    closed: Closed, receiver: Receiver, db: Platform
) -> None:
    instance, token = await accepted(closed.admin, receiver)
    foreign, theirs = await accepted(closed.admin, receiver)
    strange, of_acme = await accepted(closed.other, receiver)
    secret = await db.fetchval("select secret from horai.signing_secret where tenant_id = 1 and retired_at is null")
    later = datetime.now(UTC) + timedelta(minutes=1)
    number, fence = int(instance["id"]), instance["fence"]
    ours = read_outcome_token(token)
    assert ours is not None
    assert outcome_token(secret, ours.token) == token, "the token below differ in one part each"
    wrong = {
        "another instance": theirs,
        "another tenant": of_acme,
        "expired": outcome_token(secret, token_for(1, number, 1, fence, datetime.now(UTC) - timedelta(seconds=1))),
        "another fence": outcome_token(secret, token_for(1, number, 1, fence + 1, later)),
        "signed for the other tenant": outcome_token(secret, token_for(2, number, 1, fence, later)),
        "another secret": outcome_token("whsec_AAAA", ours.token),
        "prolonged": token.replace(str(ours.token.deadline), str(ours.token.deadline + 60_000)),
        "cut": token[:-1],
        "another letter": token[:-1] + ("0" if token[-1] != "0" else "1"),
        "empty": "",
        "not a token": "hot_",
        "a huge number": f"hot_1_{'9' * 30}_1_1_1_{'0' * 64}",
        "no such tenant": outcome_token(secret, token_for(999_999, number, 1, fence, later)),
    }
    for what, text in wrong.items():
        reply = await report(closed.stranger, instance, text)
        assert reply.status == 401, what
        expect.problem(reply, 401, "SCH_401_UNAUTHENTICATED", "no key")
    moved = await report(closed.stranger, strange, token)
    assert moved.status == 401
    for each in (instance, foreign):
        assert (await given.read(closed.admin, each))["state"] == "RUNNING"
    assert (await report(closed.stranger, instance, token)).status == 200


async def test_C42a_a_token_ends_with_the_deadline_of_its_call(closed: Closed, receiver: Receiver) -> None:
    instance, token = await accepted(closed.admin, receiver, timeout="1s", retry={"base": "1h"})
    await closed.admin.until_state(instance["id"], "FAIL")
    until = read_outcome_token(token)
    assert until is not None
    await given.until(lambda: _is_past(until.token.expires_at))

    assert (await report(closed.stranger, instance, token)).status == 401
    assert (await given.read(closed.admin, instance))["state"] == "FAIL"


async def _is_past(at: datetime) -> bool:
    return datetime.now(UTC) > at


async def test_C42a_a_token_of_an_attempt_that_was_replaced_changes_nothing(closed: Closed, receiver: Receiver) -> None:
    instance, token = await accepted(closed.admin, receiver)
    assert (await given.put(closed.admin, {"name": instance["job"]}, "a")).status == 201

    late = await report(closed.stranger, instance, token)

    expect.problem(late, 409, "SCH_409_STALE", "too late")
    assert (await given.read(closed.admin, instance))["state"] == "CANCELLED"


async def test_a_token_stays_valid_while_a_rotated_secret_is_in_force(closed: Closed, receiver: Receiver) -> None:
    instance, token = await accepted(closed.admin, receiver)
    ended, dead = await accepted(closed.admin, receiver)
    assert (await closed.admin("POST", "/api/v1/signing-secrets", {"expireOld": "1h"})).status == 201
    assert (await report(closed.stranger, instance, token)).status == 200
    assert (await closed.admin("POST", "/api/v1/signing-secrets", {"expireOld": "0s"})).status == 201
    assert (await report(closed.stranger, ended, dead)).status == 401
