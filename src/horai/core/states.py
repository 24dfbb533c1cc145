"""The states of an instance, and the only table of moves between them.

`MOVES` is the first of three sources. The second: each SQL statement that changes a state carries a line `-- moves: A
-> B`. The third: the diagram in docs/concepts/states.md is generated from here. Tests keep them equal.
"""

from enum import IntEnum


class State(IntEnum):
    """The state of an instance. 0..3 are the numbers of seed 003 (not run, running, succeeded, failed)."""

    INIT = 0
    """Waits for its time."""
    RUNNING = 1
    """Claimed by a node; `node`, `fence` and `claimed_at` identify the claim."""
    SUCCESS = 2
    """Final: the target reported success."""
    FAIL = 3
    """Failed; tried again at `execute_time`."""
    DEAD = 4
    """Final: unrecoverable, or its retries are used up. Has a dead letter."""
    CANCELLED = 5
    """Final, with a `CancelReason`."""
    BLOCKED = 6
    """Waits for its parents in a workflow."""


class CancelReason(IntEnum):
    """The reason why an instance was cancelled."""

    USER = 1
    SUPERSEDED = 2
    OVERLAP = 3
    PARENT = 4
    JOB_DELETED = 5
    SKIPPED = 6
    """A node of a workflow that its trigger rule or a branch left out."""
    EXPIRED = 7
    """The time by which its call wanted it to start has passed."""


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
    """Return whether the contract allows this move."""
    return (current, new) in MOVES


def states_named(name: str) -> frozenset[State] | None:
    """Return the states that a filter word stands for (two for `FAILED`); None for a word that is not a state."""
    return _FILTERS.get(name.upper())


def filter_words() -> list[str]:
    """Return every word that `states_named` understands, for hints."""
    return list(_FILTERS)
