"""Render docs/concepts/states.md from `horai.core.states`: the third source of the moves."""

import ast
import inspect
import sys
from pathlib import Path

from horai.core import states
from horai.core.states import CLAIMABLE, FINAL, LIVE, MOVES, CancelReason, State

PAGE = Path(__file__).resolve().parent.parent / "docs" / "concepts" / "states.md"

WORDS = {
    (State.INIT, State.INIT): "rescheduled",
    (State.FAIL, State.FAIL): "rescheduled",
    (State.RUNNING, State.INIT): "released",
    (State.INIT, State.RUNNING): "claimed",
    (State.FAIL, State.RUNNING): "claimed again",
    (State.BLOCKED, State.INIT): "parents done",
    (State.RUNNING, State.SUCCESS): "succeeded",
    (State.RUNNING, State.FAIL): "failed, tries left",
    (State.RUNNING, State.DEAD): "unrecoverable, or no tries left",
    (State.RUNNING, State.CANCELLED): "superseded or cancelled",
    (State.INIT, State.CANCELLED): "cancelled",
    (State.FAIL, State.CANCELLED): "cancelled",
    (State.BLOCKED, State.CANCELLED): "cancelled",
}


def meanings(kind: type = State) -> dict[str, str]:
    """Return the docstring below each member."""
    (found,) = [
        node
        for node in ast.parse(inspect.getsource(states)).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    ]
    said: dict[str, str] = {}
    for member, text in zip(found.body, found.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            name = member.targets[0]
            if isinstance(name, ast.Name):
                said[name.id] = str(text.value.value)
    return said


def diagram() -> list[str]:
    """Return the moves as a Mermaid state diagram."""
    births = [f"    [*] --> {state.name}" for state in (State.INIT, State.RUNNING, State.BLOCKED, State.DEAD)]
    moves = [f"    {old.name} --> {new.name}: {WORDS[old, new]}" for old, new in sorted(MOVES)]
    ends = [f"    {state.name} --> [*]" for state in sorted(FINAL)]
    return ["```mermaid", "stateDiagram-v2", *births, *moves, *ends, "```"]


def table() -> list[str]:
    """Return a table with one row per state."""
    said = meanings()
    rows = ["| state | number | kept in | meaning | may become |", "|---|---|---|---|---|"]
    for state in State:
        kept = "`instance_live`" if state in LIVE else "`instance_history`"
        after = ", ".join(f"`{new.name}`" for old, new in sorted(MOVES) if old is state)
        rows.append(f"| `{state.name}` | {int(state)} | {kept} | {said[state.name]} | {after or '(final)'} |")
    return rows


def render() -> str:
    """Return the whole page."""
    claimable = " and ".join(f"`{state.name}`" for state in sorted(CLAIMABLE))
    reasons = ", ".join(f"`{reason.name}`" for reason in CancelReason)
    lines = [
        "<!-- Generated from src/horai/core/states.py by `make docs`. Change it there. -->",
        "# States of an instance",
        "",
        "This page lists all moves. Each SQL statement that changes a state names its moves, and a test compares",
        "the statements, `core.states.MOVES` and this page.",
        "",
        *diagram(),
        "",
        *table(),
        "",
        f"Only {claimable} can be claimed, once they are due. Every write to a `RUNNING` row compares state, attempt,",
        "fence and node: a node that has lost the row changes nothing, and Horai keeps its report as a late result.",
        "",
        f"A cancelled instance has a reason: {reasons}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render())
    print(f"wrote {PAGE.relative_to(PAGE.parents[2])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
