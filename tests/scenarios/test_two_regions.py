"""Two regions: two clusters that do not know each other, and a target that lets each unit take effect once."""

from collections.abc import Iterator
from pathlib import Path

import harness
import pytest
from databases import fresh_database
from harness import Client
from receiver import Answer, Receiver

from horai.embedded import EmbeddedPostgres

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "regions.md"
ORDERS = [f"order-{number}" for number in range(20)]


async def make_job(api: Client, receiver: Receiver) -> None:
    receiver.on("/pay", Answer(200))
    made = await api("POST", "/api/v1/jobs", {"name": "pay", "target": {"type": "http", "url": receiver.url("/pay")}})
    assert made.status == 201, made.json


async def put(api: Client, key: str) -> str:
    reply = await api("PUT", f"/api/v1/jobs/pay/instances/{key}", {"version": 1})
    assert reply.status in {200, 201}, reply.json
    return reply.json["decision"]


@pytest.fixture
def elsewhere(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The database of the other region."""
    with fresh_database(postgres) as made:
        yield made


async def test_C4_two_regions_share_no_transaction_and_the_target_lets_each_unit_take_effect_once(
    url: str, elsewhere: str
) -> None:
    assert "no strong transaction across regions" in GUIDE.read_text()
    async with Receiver() as target:
        async with harness.node(url) as east, harness.node(elsewhere, name="west-node") as west:
            for region in (east, west):
                await make_job(region, target)
            for key in ORDERS:
                assert [await put(east, key), await put(west, key)] == ["INSERTED", "INSERTED"]
            await target.wait_for(2 * len(ORDERS))
            assert {await put(west, key) for key in ORDERS} == {"IGNORED"}, "a repeated put changes nothing"
        calls = {hit.headers["idempotency-key"] for hit in target.hits}
        assert len(calls) == len(target.hits) == 2 * len(ORDERS), "each region has called once for each order"
        assert set(target.effective) == {f"default:pay:{key}" for key in ORDERS}
        assert len(target.duplicates) == len(ORDERS), "the target knows the second call of each unit"

        async with harness.node(elsewhere, name="west-node") as west:  # the other region is lost
            assert await put(west, "order-20") == "INSERTED"
            await target.wait_for(2 * len(ORDERS) + 1)
            assert "default:pay:order-20" in target.effective
