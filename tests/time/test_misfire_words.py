"""The misfire policies that a job may name, and their stored form."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.time.misfire import DEFAULT, MOST_CATCHUP, MisfireRule, Policy

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SKIP, ALL = MisfireRule(Policy.skip), MisfireRule(Policy.all)
durations = st.integers(0, 10**9).map(lambda ms: timedelta(milliseconds=ms))
misfires = st.one_of(
    st.just(DEFAULT),
    st.builds(MisfireRule, st.just(Policy.skip), after=durations),
    st.builds(MisfireRule, st.just(Policy.once), window=st.none() | durations, after=durations),
    st.builds(
        MisfireRule, st.just(Policy.all), st.none() | st.integers(1, MOST_CATCHUP), st.none() | durations, durations
    ),
)


@pytest.mark.parametrize(
    ("spec", "misfire"),
    [
        ({}, DEFAULT),
        ({"policy": "skip"}, SKIP),
        ({"policy": "all", "maxCatchup": 10}, MisfireRule(Policy.all, 10)),
        (
            {"policy": "all", "maxCatchup": 1, "window": "6h", "after": "30s"},
            MisfireRule(Policy.all, 1, 6 * HOUR, MINUTE / 2),
        ),
        ({"policy": "once", "window": "90m"}, MisfireRule(Policy.once, window=90 * MINUTE)),
    ],
)
def test_a_word_is_read_and_written_and_read_again(spec: dict[str, object], misfire: MisfireRule):
    assert MisfireRule.from_spec(spec) == MisfireRule.from_spec(misfire.to_spec()) == misfire


@given(misfires)
def test_a_word_survives_the_store(misfire: MisfireRule):
    assert MisfireRule.from_spec(misfire.to_spec()) == misfire
    assert (misfire.identity == "") == (misfire == DEFAULT)


def test_words_that_differ_have_identities_of_their_own():
    words = [
        DEFAULT,
        SKIP,
        ALL,
        MisfireRule(Policy.all, 5),
        MisfireRule(Policy.all, 5, HOUR),
        MisfireRule(Policy.all, None, HOUR),
    ]
    words += [MisfireRule(after=HOUR), MisfireRule(Policy.once, window=HOUR), MisfireRule(Policy.skip, after=HOUR)]

    assert len({word.identity for word in words}) == len(words)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"policy": "never"}, "'never' is not one of skip, once, all"),
        ({"policy": "once", "maxCatchup": 5}, "maxCatchup is only accepted with the policy all"),
        ({"policy": "skip", "maxCatchup": 5}, "maxCatchup is only accepted with the policy all"),
        ({"policy": "all", "maxCatchup": 0}, "maxCatchup is between 1 and 10000, not 0"),
        ({"policy": "all", "maxCatchup": MOST_CATCHUP + 1}, "maxCatchup is between 1 and 10000, not 10001"),
        ({"policy": "skip", "window": "1h"}, "window is not accepted with the policy skip"),
        ({"policy": "all", "window": "soon"}, "'soon' is not a duration"),
        ({"policy": "all", "after": "1 hour"}, "'1 hour' is not a duration"),
    ],
)
def test_a_word_that_contradicts_itself_is_refused_with_its_reason(spec: dict[str, object], reason: str):
    with pytest.raises(ValueError, match=r"\w") as refused:
        MisfireRule.from_spec(spec)

    assert reason in str(refused.value)
