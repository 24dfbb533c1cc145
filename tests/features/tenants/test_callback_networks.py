"""Callback networks: the targets of each tenant, and loopback targets on a server that got its first key."""

import asyncio
import os

import harness
from harness import Client
from keys import created, holder, holding
from receiver import Answer, Receiver

from horai.core.settings import EngineSettings


async def ended(api: Client, job: str) -> dict[str, object]:
    """The instance of a trigger, once it has ended."""
    made = await api("POST", f"/api/v1/jobs/{job}/trigger", Idempotency_Key=os.urandom(8).hex())
    assert made.status == 201, made.json
    return await api.until_state(made.json["instance"]["id"], "SUCCESS", "DEAD")


async def test_C2b_a_loopback_target_is_refused_from_the_first_key_on_until_the_tenants_networks_have_it(url: str):
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/hook", *[Answer(200)] * 9)
        target = {"type": "http", "url": receiver.url("/hook")}
        assert (await api("POST", "/api/v1/jobs", {"name": "ours", "target": target})).status == 201
        assert (await ended(api, "ours"))["state"] == "SUCCESS"

        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")

        async def outcome() -> tuple[object, object]:
            found = await ended(admin, "ours")
            return found["state"], found["errorCode"]

        async with asyncio.timeout(30):
            while (last := await outcome()) == ("SUCCESS", None):
                pass
        assert last == ("DEAD", "ADDRESS_REFUSED")
        letter = (await admin("GET", "/api/v1/dlq")).json["items"][0]
        assert "horai tenants set default --callback-network 127.0.0.0/8" in letter["errorMsg"]

        networks = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
        assert (await root("PATCH", "/api/v1/tenants/default", networks)).status == 200
        async with asyncio.timeout(30):
            while await outcome() != ("SUCCESS", None):
                pass


async def test_C2b_a_connection_of_one_tenant_is_not_used_for_another_that_may_not_dial_it(url: str):
    async with Receiver() as receiver, harness.node(url, EngineSettings(callback_allow=harness.LOOPBACK)) as api:
        receiver.on("/hook", *[Answer(200)] * 9)
        root = holding(api, (await created(api, "platform-admin"))["key"])
        allowed = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
        admins: dict[str, Client] = {}
        for name in ("north", "south"):
            await root("POST", "/api/v1/tenants", {"name": name})
            admins[name] = await holder(root, "admin", name)
            target = {"type": "http", "url": receiver.url("/hook")}
            assert (await admins[name]("POST", "/api/v1/jobs", {"name": "call", "target": target})).status == 201
        assert (await root("PATCH", "/api/v1/tenants/north", allowed)).status == 200
        for _ in range(2):
            assert (await ended(admins["north"], "call"))["state"] == "SUCCESS"
            assert (await ended(admins["south"], "call"))["errorCode"] == "ADDRESS_REFUSED"
        assert len(receiver.hits) == 2
