"""`crash_everywhere`: killed at every boundary, a durable function has the effects and the result of an undisturbed run."""

import pytest

from horai import gather, sleep, step, step_key, wait_for
from horai.testing import CrashMattered, crash_everywhere


async def test_a_durable_function_survives_a_crash_at_every_boundary() -> None:
    charged: dict[str, int] = {}

    async def charge(amount: int) -> int:
        charged[step_key().partition(":")[2]] = amount
        return amount

    async def checkout() -> list[int]:
        first = await step("charge", charge, 1)
        await sleep("10m")
        approved = await wait_for("approved", timeout="1d")
        second, third = await gather(step("fee", charge, 2), step("tax", charge, approved))
        return [first, second, third]

    def effects() -> dict[str, int]:
        seen = dict(charged)
        charged.clear()
        return seen

    report = await crash_everywhere(checkout, effects=effects, signals={"approved": 3})

    assert report.result == [1, 2, 3]
    assert report.effects == {"charge:1": 1, "fee:1": 2, "tax:1": 3}
    assert {
        f"{moment} {name}#1" for moment in ("before", "inside", "after") for name in ("charge", "fee", "tax")
    } == set(report.boundaries)


async def test_an_effect_outside_of_a_step_is_found() -> None:
    sent = list[str]()

    async def note() -> None: ...

    async def careless() -> None:
        sent.append("mail")
        await step("note", note)

    def effects() -> list[str]:
        seen = list(sent)
        sent.clear()
        return seen

    with pytest.raises(CrashMattered, match="before note#1"):
        await crash_everywhere(careless, effects=effects)
