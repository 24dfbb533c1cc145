"""The table of moves and its witnesses: the SQL statements and the page in the docs."""

import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.states import (
    CLAIMABLE,
    FINAL,
    LIVE,
    MOVES,
    State,
    filter_words,
    may_move,
    states_named,
)
from horai.db.catalog import CATALOG, Statement

ROOT = Path(__file__).parents[2]
Move = tuple[State | None, State]


def declared(statement: Statement) -> set[Move]:
    """`A | B -> C, -> D` as pairs; a birth comes from nothing."""
    moves: set[Move] = set()
    for part in (statement.moves or "").split(",") if statement.moves else ():
        before, arrow, after = part.partition("->")
        assert arrow, f"{statement.name}: {part!r} is no move"
        olds = [State[word.strip()] for word in before.split("|")] if before.strip() else [None]
        moves |= {(old, State[word.strip()]) for old in olds for word in after.split("|")}
    return moves


def writes_state(statement: Statement) -> bool:
    """Return true if the statement sets a state, or inserts rows into a table of instances."""
    text = re.sub(r"--.*", "", statement.text)
    sets = re.search(r"\bset\b(?:(?!\b(?:from|where)\b).)*\bstate = ", text, re.DOTALL)
    births = re.search(r"insert into horai\.instance_(live|history)\b", text)
    return bool(sets or births)


def test_C56_the_statements_make_exactly_the_moves_of_the_table():
    made = {move for statement in CATALOG.values() for move in declared(statement) if move[0] is not None}

    assert made == MOVES


def test_instances_are_born_waiting_or_claimed_or_are_imported_dead():
    births = {new for statement in CATALOG.values() for old, new in declared(statement) if old is None}

    assert births == {State.INIT, State.BLOCKED, State.RUNNING, State.DEAD}
    assert [s.name for s in CATALOG.values() if (None, State.RUNNING) in declared(s)] == ["enqueue_running"]
    assert [s.name for s in CATALOG.values() if (None, State.DEAD) in declared(s)] == ["import_letters"]


@pytest.mark.parametrize("statement", CATALOG.values(), ids=lambda statement: statement.name)
def test_each_statement_that_writes_a_state_says_which_moves_it_makes(statement: Statement):
    moves = declared(statement)

    keeps_its_state = statement.name == "move_planned"
    assert bool(moves) == (writes_state(statement) or keeps_its_state)


@pytest.mark.parametrize("statement", [s for s in CATALOG.values() if s.moves], ids=lambda statement: statement.name)
def test_each_statement_writes_the_states_it_declares(statement: Statement):
    """The number behind `state =`, or the one that stands in the list of an insert into history."""
    text = re.sub(r"--.*", "", statement.text)
    after = {new for _, new in declared(statement)}
    numbers = {State(int(n)) for n in re.findall(r"set state = (\d)", text)}
    numbers |= {State(int(n)) for n in re.findall(r"events(?: \+ 1)?, (\d)", text)}
    if "insert into horai.instance_live" in text:
        numbers |= {State.INIT} | {State(int(n)) for n in re.findall(r"then 0 else (\d) end\s+from fresh", text)}
        numbers |= {State(int(n)) for n in re.findall(r"when fresh.runs then (\d) else 0 end", text)}

    assert numbers == after or statement.name == "move_planned"


def test_the_page_in_the_docs_is_the_generated_one():
    spec = importlib.util.spec_from_file_location("states_doc", ROOT / "tools" / "states_doc.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    page = (ROOT / "docs" / "concepts" / "states.md").read_text()

    assert page == tool.render(), "run `make docs`"
    drawn = {(State[a], State[b]) for a, b in re.findall(r"^    (\w+) --> (\w+):", page, re.MULTILINE)}
    assert drawn == MOVES


def test_C56_every_state_is_either_live_or_final():
    assert set(State) == LIVE | FINAL
    assert not LIVE & FINAL
    assert {State.INIT, State.FAIL} == CLAIMABLE


@given(old=st.sampled_from(State), new=st.sampled_from(State))
def test_C56_only_what_the_contract_lists_may_happen(old: State, new: State):
    contract = {
        State.INIT: {State.RUNNING, State.CANCELLED, State.INIT},
        State.BLOCKED: {State.INIT, State.CANCELLED},
        State.FAIL: {State.RUNNING, State.CANCELLED, State.FAIL},
        State.RUNNING: {State.SUCCESS, State.FAIL, State.DEAD, State.CANCELLED, State.INIT},
    }

    assert may_move(old, new) == (new in contract.get(old, set()))


@pytest.mark.parametrize("state", sorted(FINAL))
def test_C56_final_is_final(state: State):
    assert not [new for new in State if may_move(state, new)]


@pytest.mark.parametrize(
    ("word", "states"),
    [
        ("INIT", {State.INIT}),
        ("init", {State.INIT}),
        ("DONE", {State.SUCCESS}),
        ("PENDING", {State.INIT}),
        ("FAILED", {State.FAIL, State.DEAD}),
        ("0", {State.INIT}),
        ("1", {State.RUNNING}),
        ("2", {State.SUCCESS}),
        ("3", {State.FAIL}),
    ],
)
def test_filters_speak_the_words_of_all_seeds(word: str, states: set[State]):
    assert states_named(word) == states
    assert word.upper() in filter_words()


@pytest.mark.parametrize("word", ["", "4", "RUN", "INIT "])
def test_other_words_are_no_state(word: str):
    assert states_named(word) is None
