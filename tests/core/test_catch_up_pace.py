from horai.core.catch_up_pace import FIRST, LEAST, MOST, PATIENCE, CatchUpPace


def test_a_lane_begins_with_a_small_portion_and_keeps_it_until_it_was_given():
    portions = CatchUpPace()

    assert [portions.next(0, now) for now in (0.0, 1.0, 99.0)] == [FIRST] * 3


def test_a_portion_that_is_gone_at_the_next_look_doubles_up_to_the_most():
    portions, seen = CatchUpPace(), list[int]()
    for now in range(7):
        seen.append(portions.next(0, now))
        portions.given(now)

    assert seen == [50, 100, 200, 400, 800, MOST, MOST]


def test_nothing_more_is_given_while_one_of_the_last_waits():
    portions = CatchUpPace()
    portions.given(0.0)

    assert portions.next(1, 0.1) == 0
    assert portions.next(1, 0.9) == 0
    assert portions.next(0, 0.95) == 2 * FIRST, "it was worked off within the patience"


def test_a_lane_that_does_not_work_off_its_portion_in_time_gets_half_as_much():
    portions = CatchUpPace(400)
    portions.given(0.0)

    assert portions.next(399, PATIENCE) == 0
    assert portions.size == 200
    assert portions.next(399, 1.5 * PATIENCE) == 0
    assert portions.size == 200, "once in each second"
    assert portions.next(399, 2 * PATIENCE) == 0
    assert portions.size == 100


def test_a_lane_that_stands_still_gets_the_least_and_recovers():
    portions = CatchUpPace()
    portions.given(0.0)
    for now in range(1, 100):
        assert portions.next(10, now) == 0
    assert portions.size == LEAST

    assert portions.next(0, 100.0) == 2 * LEAST


def test_a_portion_grows_by_what_was_worked_off_and_not_by_looking():
    portions = CatchUpPace()
    portions.given(0.0)

    assert [portions.next(0, now) for now in (1.0, 2.0, 3.0)] == [2 * FIRST] * 3
