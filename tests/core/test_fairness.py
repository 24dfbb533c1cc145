"""Whose turn it is: bands, ageing, weights, queues one after the other."""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sizes import examples

from horai.core.fairness import AGEING_SECONDS, BANDS, Contention, FairQueue, QueuePosition

CORE, HIGH, NORMAL, LOW = range(BANDS)
Place = tuple[str, int]


def standing(band: int = NORMAL, tenant: int = 1, queue: str = "q", weight: int = 1) -> QueuePosition:
    return QueuePosition(band, tenant, queue, weight)


def line_up(turns: FairQueue[Place], name: str, where: QueuePosition, places: int = 32, now: float = 0.0) -> None:
    for number in range(places):
        turns.ready((name, number), where, now)


def served(quotas: Iterable[tuple[Place, int]]) -> Counter[str]:
    """Rows by the name of the place."""
    rows: Counter[str] = Counter()
    for (name, _), count in quotas:
        rows[name] += count
    return rows


def drain(
    turns: FairQueue[Place], standings: dict[str, QueuePosition], quotas: int, rows: int, now: float = 0.0
) -> Counter[str]:
    """Count the rows of each name while all names always have more: a place that was picked is ready again at once."""
    total: Counter[str] = Counter()
    for _ in range(quotas):
        chosen = turns.pick(now, rows, 64)
        total += served(chosen)
        for place, _ in chosen:
            turns.ready(place, standings[place[0]], now)
    return total


# Weights


@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.integers(1, 2000),
    weights=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    places=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
def test_shares_follow_the_weights_for_any_size_of_a_pick(rows: int, weights: tuple[int, int], places: tuple[int, int]):
    turns: FairQueue[Place] = FairQueue()
    standings = {name: standing(tenant=n, weight=w) for n, (name, w) in enumerate(zip("ab", weights, strict=True))}
    for name, count in zip("ab", places, strict=True):
        line_up(turns, name, standings[name], count)

    got = drain(turns, standings, 200, rows)

    expected = weights[0] / sum(weights)
    assert got["a"] / got.total() == pytest.approx(expected, rel=0.05, abs=0.01)
    assert 199 * rows <= got.total() <= 200 * rows, "what does not come out even is owed"


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_weights_of_three_to_one_give_three_to_one(rows: int):
    standings = {"big": standing(tenant=1, weight=3), "small": standing(tenant=2)}
    turns: FairQueue[Place] = FairQueue()
    for name, where in standings.items():
        line_up(turns, name, where)

    got = drain(turns, standings, 1000, rows)

    assert got["big"] / got["small"] == pytest.approx(3, rel=0.05)


def test_a_tenant_gets_no_more_for_having_many_queues():
    standings = {f"a{n}": standing(tenant=1, queue=f"q{n}") for n in range(20)} | {"b": standing(tenant=2)}
    turns: FairQueue[Place] = FairQueue()
    for name, where in standings.items():
        line_up(turns, name, where, places=3)

    got = drain(turns, standings, 500, 100)

    assert got["b"] / got.total() == pytest.approx(0.5, rel=0.05)
    of_queues = [got[f"a{n}"] for n in range(20)]
    assert min(of_queues) > 0.8 * max(of_queues), "and its queues have their turns one after the other"


def test_a_thousand_tenants_have_equal_shares_though_a_pick_has_room_for_few():
    standings = {f"t{n}": standing(tenant=n) for n in range(1000)}
    turns: FairQueue[Place] = FairQueue()
    for name, where in standings.items():
        line_up(turns, name, where, places=1)

    got = drain(turns, standings, 100, 64)

    assert len(got) == 1000
    assert max(got.values()) - min(got.values()) <= 2


def test_a_weight_that_changes_under_a_lasting_backlog_counts_from_then_on():
    standings = {"a": standing(tenant=1), "b": standing(tenant=2)}
    turns: FairQueue[Place] = FairQueue()
    for name, where in standings.items():
        line_up(turns, name, where)
    before = drain(turns, standings, 200, 10)
    assert before["a"] == before["b"]
    standings["a"] = standing(tenant=1, weight=4)
    drain(turns, standings, 10, 10)

    after = drain(turns, standings, 1000, 10)

    assert after["a"] / after["b"] == pytest.approx(4, rel=0.05)


def test_a_tenant_that_was_away_is_not_owed_all_it_did_not_ask_for():
    standings = {"a": standing(tenant=1), "b": standing(tenant=2)}
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "a", standings["a"])
    line_up(turns, "b", standings["b"])
    drain(turns, standings, 10, 100)
    for number in range(32):
        turns.discard(("b", number))
    drain(turns, standings, 1000, 100)
    line_up(turns, "b", standings["b"])

    got = drain(turns, standings, 10, 100)

    assert got["a"] >= 400


# Bands


def test_a_more_urgent_band_is_served_alone():
    turns: FairQueue[Place] = FairQueue()
    for band in (LOW, CORE, NORMAL, HIGH):
        line_up(turns, str(band), standing(band, weight=1000 if band else 1), places=2)

    order = [set(served(turns.pick(0.0, 100, 64))) for _ in range(BANDS)]

    assert order == [{"0"}, {"1"}, {"2"}, {"3"}]
    assert turns.pick(0.0, 100, 64) == []


def test_a_new_scan_of_higher_priority_is_picked_next():
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "low", standing(LOW), places=100)
    turns.pick(0.0, 10, 10)
    turns.ready(("core", 0), standing(CORE, tenant=2), 0.0)

    assert served(turns.pick(0.0, 10, 10)) == {"core": 10}


# Ageing


def test_a_low_queue_waits_ninety_seconds_behind_a_backlog_of_core_and_no_longer():
    turns: FairQueue[Place] = FairQueue()
    standings = {"core": standing(CORE), "low": standing(LOW, tenant=2)}
    for name, where in standings.items():
        line_up(turns, name, where, places=4)
    first: float | None = None
    for second in range(200):
        got = drain(turns, standings, 3, 100, now=float(second))
        if got["low"] and first is None:
            first = second

    assert first == 3 * AGEING_SECONDS


def test_a_queue_that_has_been_served_is_back_in_its_band():
    turns: FairQueue[Place] = FairQueue()
    standings = {"core": standing(CORE), "low": standing(LOW, tenant=2)}
    for name, where in standings.items():
        line_up(turns, name, where, places=4)
    times: list[int] = []
    for second in range(400):
        if drain(turns, standings, 5, 100, now=float(second))["low"]:
            times.append(second)

    assert times == [90, 180, 270, 360], "once it has risen, one turn; then it waits again"


def test_a_queue_with_work_left_after_its_turn_is_back_in_its_band():
    turns: FairQueue[Place] = FairQueue()
    standings = {"core": standing(CORE), "low": standing(LOW, tenant=2)}
    for name, where in standings.items():
        line_up(turns, name, where, places=200)
    times: list[int] = []
    for second in range(400):
        if drain(turns, standings, 5, 100, now=float(second))["low"]:
            times.append(second)

    assert times == [90, 180, 270, 360], "64 of its 200 places have a turn; the others wait again with the rest"


@pytest.mark.parametrize(("band", "wait"), [(HIGH, 30), (NORMAL, 60), (LOW, 90)])
def test_each_band_is_a_wait_of_thirty_seconds(band: int, wait: int):
    turns: FairQueue[Place] = FairQueue()
    standings = {"core": standing(CORE), "other": standing(band, tenant=2)}
    for name, where in standings.items():
        line_up(turns, name, where, places=4)

    assert drain(turns, standings, 5, 100, now=wait - 1.0)["other"] == 0
    assert drain(turns, standings, 5, 100, now=wait + 0.0)["other"] > 0


def test_a_queue_that_has_risen_passes_its_own_band_only():
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "normal", standing(NORMAL), now=29.0)
    line_up(turns, "high", standing(HIGH), now=29.0)
    line_up(turns, "aged", standing(LOW, tenant=2), now=0.0)

    assert set(served(turns.pick(31.0, 64, 64))) == {"high"}
    assert set(served(turns.pick(31.0, 64, 64))) == {"aged", "normal"}


def test_a_place_that_leaves_while_its_queue_has_risen_leaves_nothing_behind():
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "low", standing(LOW), places=2)
    turns.ready(("core", 0), standing(CORE), 0.0)
    turns.pick(95.0, 1, 1)
    turns.discard(("low", 0))
    turns.discard(("low", 1))

    assert len(turns) == 0
    assert turns.pick(200.0, 10, 10) == []


# Rows and places


@settings(max_examples=examples(100), deadline=None)
@given(rows=st.integers(1, 500), places=st.integers(1, 80), tenants=st.integers(1, 30), seed=st.integers(0, 999))
def test_a_pick_keeps_to_its_rows_and_places_and_gives_each_place_something(
    rows: int, places: int, tenants: int, seed: int
):
    dice = random.Random(seed)
    turns: FairQueue[Place] = FairQueue()
    for tenant in range(tenants):
        where = standing(tenant=tenant, queue=str(dice.randrange(3)), weight=dice.randrange(1, 20))
        line_up(turns, str(tenant), where, dice.randrange(1, 20))
    waiting = len(turns)

    quotas = turns.pick(0.0, rows, places)

    assert 0 < len(quotas) <= places
    assert sum(count for _, count in quotas) <= rows
    assert all(count >= 1 for _, count in quotas)
    assert len(turns) == waiting - len(quotas)


def test_a_lone_place_gets_everything():
    turns: FairQueue[Place] = FairQueue()
    turns.ready(("a", 0), standing(weight=7), 0.0)

    assert turns.pick(0.0, 1000, 64) == [(("a", 0), 1000)]


def test_a_place_that_is_ready_twice_is_in_line_once():
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "a", standing(), places=3)
    line_up(turns, "a", standing(), places=3)

    assert len(turns) == 3
    assert sorted(place for place, _ in turns.pick(0.0, 9, 9)) == [("a", 0), ("a", 1), ("a", 2)]
    assert turns.pick(0.0, 9, 9) == []


def test_a_place_that_was_discarded_has_no_turn_and_the_others_have_theirs():
    turns: FairQueue[Place] = FairQueue()
    line_up(turns, "a", standing(), places=3)

    turns.discard(("a", 1))
    turns.discard(("a", 1))
    turns.discard(("never", 0))

    assert ("a", 1) not in turns
    assert [place for place, _ in turns.pick(0.0, 9, 9)] == [("a", 0), ("a", 2)]


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 100), places=st.integers(1, 16))
def test_every_ready_place_is_picked_in_the_end(seed: int, rows: int, places: int):
    """No place starves, though others stand before it: others come back at once, and time goes on."""
    dice = random.Random(seed)
    turns: FairQueue[Place] = FairQueue()
    standings = {
        str(n): standing(dice.randrange(BANDS), dice.randrange(4), str(dice.randrange(3)), dice.randrange(1, 5))
        for n in range(8)
    }
    for name, where in standings.items():
        line_up(turns, name, where, places=3)
    everybody = {(name, number) for name in standings for number in range(3)}
    seen: set[Place] = set()
    for pick in range(3000):
        chosen = turns.pick(pick * 2.0, rows, places)
        seen |= {place for place, _ in chosen}
        for place, _ in chosen:
            turns.ready(place, standings[place[0]], pick * 2.0)
        if seen == everybody:
            return
    raise AssertionError(f"never picked: {sorted(everybody - seen)}")


class Lines(RuleBasedStateMachine):
    """Any order of calls: what is in line is exactly what was ready and neither picked nor discarded since."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: FairQueue[int] = FairQueue()
        self.waiting: dict[int, QueuePosition] = {}
        self.now = 0.0

    @initialize(places=st.lists(st.integers(0, 40), max_size=30))
    def begin(self, places: list[int]) -> None:
        for place in places:
            self.ready(place, NORMAL, 1, "q", 1)

    @rule(
        place=st.integers(0, 40),
        band=st.integers(0, BANDS - 1),
        tenant=st.integers(1, 3),
        queue=st.sampled_from("qr"),
        weight=st.integers(1, 5),
    )
    def ready(self, place: int, band: int, tenant: int, queue: str, weight: int) -> None:
        where = QueuePosition(band, tenant, queue, weight)
        self.turns.ready(place, where, self.now)
        self.waiting.setdefault(place, where)

    @rule(place=st.integers(0, 40))
    def discard(self, place: int) -> None:
        self.turns.discard(place)
        self.waiting.pop(place, None)

    @rule(rows=st.integers(1, 50), places=st.integers(1, 20))
    def pick(self, rows: int, places: int) -> None:
        quotas = self.turns.pick(self.now, rows, places)
        chosen = [place for place, _ in quotas]
        assert bool(chosen) == bool(self.waiting)
        assert len(chosen) == len(set(chosen)) <= places
        assert set(chosen) <= set(self.waiting)
        assert sum(count for _, count in quotas) <= rows
        for place in chosen:
            del self.waiting[place]

    @rule(seconds=st.sampled_from([0.1, 1.0, 31.0, 95.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.turns) == len(self.waiting)
        assert all(place in self.turns for place in self.waiting)

    def teardown(self) -> None:
        left = set(self.waiting)
        while quotas := self.turns.pick(self.now, 100, 100):
            left -= {place for place, _ in quotas}
        assert not left


TestLines = Lines.TestCase
TestLines.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_company_is_mixed_while_more_than_one_tenant_or_band_was_here_lately():
    company = Contention()
    company.meet(2, 7, now=0.0)
    company.meet(2, 7, now=0.5)
    assert not company.is_mixed(0.5), "one alone, however often"

    company.meet(2, 8, now=0.6)
    assert company.is_mixed(0.7)
    assert company.is_mixed(1.4)
    assert not company.is_mixed(2.0), "the other has been away for a second"

    company.meet(2, 7, now=2.0)
    company.meet(0, 7, now=2.0)
    assert company.is_mixed(2.0), "two bands of one tenant wait for each other as well"
