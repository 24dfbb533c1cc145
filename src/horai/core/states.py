"""The states of an instance and the one table of moves between them.

`MOVES` is the first of three witnesses. The second: each SQL statement that changes a state carries a line
`-- moves: A -> B`. The third: the diagram in docs/concepts/states.md is generated from here. Tests hold them equal.
"""

from enum import IntEnum


class State(IntEnum):
    """0..3 are the numbers of seed 003 (not run, running, succeeded, failed)."""

    INIT = 0
    """Waits for its time."""
    RUNNING = 1
    """Claimed by a node; `node`, `fence` and `claimed_at` say by whom."""
    SUCCESS = 2
    """Final: the target said so."""
    FAIL = 3
    """Failed, will be tried again at `execute_time`."""
    DEAD = 4
    """Final: unrecoverable, or its retries are used up. Has a dead letter."""
    CANCELLED = 5
    """Final, with a `CancelReason`."""
    BLOCKED = 6
    """Waits for its parents in a workflow."""


class CancelReason(IntEnum):
    """Why an instance was cancelled."""

    USER = 1
    SUPERSEDED = 2
    OVERLAP = 3
    PARENT = 4
    JOB_DELETED = 5


LIVE = frozenset({State.INIT, State.BLOCKED, State.RUNNING, State.FAIL})
FINAL = frozenset({State.SUCCESS, State.DEAD, State.CANCELLED})
CLAIMABLE = frozenset({State.INIT, State.FAIL})

MOVES: frozenset[tuple[State, State]] = frozenset(
    {
        (State.INIT, State.RUNNING),
        (State.INIT, State.CANCELLED),
        (State.INIT, State.INIT),
        (State.BLOCKED, State.INIT),
        (State.BLOCKED, State.CANCELLED),
        (State.FAIL, State.RUNNING),
        (State.FAIL, State.CANCELLED),
        (State.FAIL, State.FAIL),
        (State.RUNNING, State.SUCCESS),
        (State.RUNNING, State.FAIL),
        (State.RUNNING, State.DEAD),
        (State.RUNNING, State.CANCELLED),
        (State.RUNNING, State.INIT),
    }
)

_FILTERS: dict[str, frozenset[State]] = {
    **{state.name: frozenset({state}) for state in State},
    "DONE": frozenset({State.SUCCESS}),
    "PENDING": frozenset({State.INIT}),
    "FAILED": frozenset({State.FAIL, State.DEAD}),
    **{str(number): frozenset({State(number)}) for number in range(4)},
}


def may_move(current: State, new: State) -> bool:
    """Whether the contract allows this move."""
    return (current, new) in MOVES


def states_named(name: str) -> frozenset[State] | None:
    """The states a filter word stands for (`FAILED` is two of them), or None for a word that is no state."""
    return _FILTERS.get(name.upper())


def filter_words() -> list[str]:
    """Every word `states_named` understands, for hints."""
    return list(_FILTERS)
