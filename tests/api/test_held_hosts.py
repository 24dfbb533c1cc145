"""Hosts whose calls wait: health and `why` tell of them, also from a node that makes no calls."""

from datetime import datetime

import harness
from receiver import Answer, Receiver

from api import given
from horai.core.shards import Role

CALLS = frozenset({Role.executor, Role.scheduler})
NEVER = {"maxRetry": 3, "base": "1h"}


async def test_C60_why_and_health_of_another_node_name_the_open_breaker(url: str) -> None:
    async with (
        Receiver() as receiver,
        harness.node(url, harness.GUARDED, name="caller", roles=CALLS),
        harness.node(url, name="door", roles=frozenset({Role.api})) as api,
    ):
        job = await given.scripted(api, receiver, Answer(503), retry=NEVER)
        await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": [{}] * 40})

        async def is_told() -> list[dict[str, str]]:
            return (await api("GET", "/api/v1/scheduler/health")).json["heldHosts"]

        (held,) = await given.until(is_told)

        assert (held["tenant"], held["host"], held["node"]) == ("default", receiver.url(""), "caller")
        assert held["state"] in {"OPEN", "HALF_OPEN"}
        assert datetime.fromisoformat(held["since"]) < datetime.fromisoformat(held["nextTry"])
        instance = (await given.put(api, job, "late", None)).json["instance"]
        told = (await api("GET", f"/api/v1/instances/{instance['id']}/why")).json
        assert told["verdict"] == "HELD"
        assert told["holds"][0]["kind"] == "BREAKER"
        assert held["host"] in told["why"]
        other = await given.job(api)
        planned = (await given.put(api, other, "planned")).json["instance"]
        assert (await api("GET", f"/api/v1/instances/{planned['id']}/why")).json["verdict"] == "WAITING"


async def test_C60_a_node_with_an_open_breaker_is_healthy(url: str) -> None:
    """A target that is down is no fault of the scheduler: status and readiness stay as they are."""
    async with Receiver() as receiver, harness.node(url, harness.GUARDED) as api:
        job = await given.scripted(api, receiver, Answer(503), retry=NEVER)
        await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": [{}] * 40})

        async def is_told() -> list[dict[str, str]]:
            return (await api("GET", "/api/v1/scheduler/health")).json["heldHosts"]

        (held,) = await given.until(is_told)

        assert held["node"] == "test-node"
        assert (await api("GET", "/api/v1/scheduler/health")).json["status"] == "UP"
        assert (await api("GET", "/readyz")).status == 200
