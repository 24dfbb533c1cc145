"""`/signing-secrets`: shown, rotated, and every call signed."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from harness import Client
from receiver import Answer, Hit, Receiver

from api import expect, given
from horai import verify_webhook
from horai.db.pool import Platform

SECRETS = "/api/v1/signing-secrets"


async def call(api: Client, receiver: Receiver) -> Hit:
    """Run an instance; the request that its target received."""
    job = await given.scripted(api, receiver, Answer(200))
    made = (await given.put(api, job, "article:42", None, payload={"n": 1})).json["instance"]
    await api.until_state(made["id"], "SUCCESS")
    return given.hits(receiver, job)[-1]


async def secrets(api: Client) -> list[str]:
    return [each["secret"] for each in (await api("GET", SECRETS)).json["items"]]


async def test_S5_a_receiver_gets_the_secret_from_the_api_and_verifies_a_call_with_it(
    api: Client, receiver: Receiver
) -> None:
    shown = await api("GET", SECRETS)
    assert (shown.status, shown.headers["cache-control"]) == (200, "no-store")
    (secret,) = shown.json["items"]
    assert set(secret) == {"id", "secret", "createdAt", "expiresAt"}
    assert secret["expiresAt"] is None

    hit = await call(api, receiver)

    assert verify_webhook(secret["secret"], hit.headers, hit.body)
    assert not verify_webhook(secret["secret"], hit.headers, hit.body + b" ")


async def test_S5_after_a_rotation_both_secrets_sign_until_the_old_one_expires(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    (old,) = await secrets(api)
    began = datetime.now(UTC)

    rotated = await api("POST", SECRETS, {"expireOld": "2h"})

    assert rotated.status == 201, rotated.json
    newest, before = rotated.json["items"]
    assert (newest["expiresAt"], before["secret"]) == (None, old)
    ends = datetime.fromisoformat(before["expiresAt"])
    assert timedelta(hours=2) <= ends - began < timedelta(hours=2, minutes=5)
    await asyncio.sleep(1.1)  # a node reads secrets at most a second late
    hit = await call(api, receiver)
    assert verify_webhook(newest["secret"], hit.headers, hit.body)
    assert verify_webhook(old, hit.headers, hit.body)

    await db.execute("update horai.signing_secret set retired_at = now() where retired_at is not null")
    await asyncio.sleep(1.1)
    assert await secrets(api) == [newest["secret"]]
    hit = await call(api, receiver)
    assert verify_webhook(newest["secret"], hit.headers, hit.body)
    assert not verify_webhook(old, hit.headers, hit.body)

    again = await api("POST", SECRETS, {"expireOld": "0s"})
    assert len(again.json["items"]) == 1
    assert await db.fetchval("select count(*) from horai.signing_secret where secret = $1", old) == 0
    told = await db.fetch("select data::text from horai.event")
    assert "whsec_" not in str(told)


async def test_S5_a_rotation_keeps_the_old_secret_for_a_day_unless_it_is_told_otherwise(api: Client) -> None:
    await api("POST", SECRETS, {"expireOld": "0s"})
    began = datetime.now(UTC)
    _, before = (await api("POST", SECRETS)).json["items"]
    ends = datetime.fromisoformat(before["expiresAt"])
    assert timedelta(hours=24) <= ends - began < timedelta(hours=24, minutes=5)

    await api("POST", SECRETS, {"expireOld": "30d"})
    after = (await api("GET", SECRETS)).json["items"][-1]
    assert after["expiresAt"] == before["expiresAt"], "a later rotation does not prolong it"


async def test_S5_secrets_in_force_are_bounded_however_many_rotate_at_once(api: Client) -> None:
    await api("POST", SECRETS, {"expireOld": "0s"})
    replies = await asyncio.gather(*(api("POST", SECRETS) for _ in range(12)))
    refused = [reply for reply in replies if reply.status != 201]
    assert len(refused) == 5
    expect.problem(refused[0], 409, "SCH_409_CONFLICT", "8 signing secrets")
    assert len(await secrets(api)) == 8
    assert (await api("POST", SECRETS, {"expireOld": "0s"})).status == 201
    assert len(await secrets(api)) == 1


@pytest.mark.parametrize("overlap", ["soon", "31d", "-1s", "", 5])
async def test_S5_an_overlap_that_makes_no_sense_changes_nothing(api: Client, overlap: object) -> None:
    before = await secrets(api)
    expect.invalid(await api("POST", SECRETS, {"expireOld": overlap}), "expireOld")
    assert await secrets(api) == before


async def test_S5_a_tenant_has_a_secret_of_its_own_from_its_creation_on(db: Platform) -> None:
    name = given.name("tenant")
    made = "insert into horai.tenant (name) values ($1) returning id"
    tenant = await db.fetchval(made, name)
    found = await db.fetch("select secret, retired_at from horai.signing_secret where tenant_id = $1", tenant)
    assert [row["retired_at"] for row in found] == [None]
    others = await db.fetch("select secret from horai.signing_secret where tenant_id <> $1", tenant)
    assert found[0]["secret"] not in {row["secret"] for row in others}


async def test_S5_a_rotation_leaves_the_secrets_of_other_tenants_alone(api: Client, db: Platform) -> None:
    theirs = "select id, secret, retired_at from horai.signing_secret where tenant_id <> 1 order by id"
    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await db.execute(
        "insert into horai.signing_secret (tenant_id, secret, retired_at) values ($1, horai.new_signing_secret(), now())",
        tenant,
    )
    before = await db.fetch(theirs)
    assert len(before) >= 2

    rotated = await api("POST", SECRETS, {"expireOld": "0s"})

    assert rotated.status == 201, rotated.json
    assert await db.fetch(theirs) == before
    assert not {row["secret"] for row in before} & set(await secrets(api)), "nor are they shown"


async def test_S5_a_tenant_whose_secrets_were_deleted_by_hand_gets_a_new_one_before_the_next_call(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    before = await secrets(api)
    await db.execute("delete from horai.signing_secret where tenant_id = 1")
    await asyncio.sleep(1.1)

    hit = await call(api, receiver)

    (secret,) = await secrets(api)
    assert secret not in before
    assert verify_webhook(secret, hit.headers, hit.body)
