"""Writes what the console has from Horai's own sources, into console/src/generated/.

states.ts, from `horai.core.states`: the one table of every state's colour and shape.
sentences.ts, from `horai.features.phrasebooks`: all that the server may say, with the places of each sentence.

Colours are pairs for light and dark; `solid` is for bars, charts and graphs. Texts on their tint keep 4.5 : 1.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from horai.core.states import FINAL, MOVES, CancelReason, State
from horai.features.phrasebooks import every_phrase

OUTPUT = Path(__file__).resolve().parent.parent / "console" / "src" / "generated"


@dataclass(frozen=True, slots=True)
class Paint:
    """A colour as text, as the tint behind it, and as a solid area."""

    text: str
    tint: str
    solid: str


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a state. The shape tells states apart without colour."""

    shape: str
    light: Paint
    dark: Paint


LOOKS = {
    State.BLOCKED: Look("bars", Paint("#5b3fa8", "#f0ecfb", "#8b74d6"), Paint("#bda9f5", "#2a2440", "#9a83e0")),
    State.INIT: Look("ring", Paint("#3f5566", "#eaf0f4", "#7b93a6"), Paint("#adc1d0", "#222c33", "#7f97a9")),
    State.RUNNING: Look("play", Paint("#14599c", "#e6f0fb", "#2f7fd0"), Paint("#8cc0f5", "#14283d", "#4a97e3")),
    State.FAIL: Look("again", Paint("#8a4b00", "#fdf1de", "#cc7d14"), Paint("#f2bd6d", "#362610", "#e09a3a")),
    State.SUCCESS: Look("check", Paint("#22672f", "#e7f5e9", "#3f9a50"), Paint("#86d394", "#172c1b", "#4fae60")),
    State.DEAD: Look("cross", Paint("#a61f2b", "#fdeaec", "#d23a47"), Paint("#f79aa2", "#3a1a1e", "#e5626d")),
    State.CANCELLED: Look("dash", Paint("#5b6163", "#f0f1f1", "#8b9396"), Paint("#b2babc", "#25292b", "#757e81")),
}
"""In the order of an instance's life; so are lists, legends and filters."""


def states() -> str:
    """The module of states."""
    missing = set(State) - set(LOOKS)
    if missing:
        raise SystemExit(f"error: no look for {', '.join(sorted(state.name for state in missing))}")
    rows = [
        {
            "name": state.name,
            "isFinal": state in FINAL,
            "next": sorted({new.name for old, new in MOVES if old is state}),
            **asdict(look),
        }
        for state, look in LOOKS.items()
    ]
    lines = [
        "// Generated from src/horai/core/states.py by tools/console_tables.py. Change it there.",
        f"export const STATES = {json.dumps(rows, indent=2)} as const;",
        f"export const CANCEL_REASONS = {json.dumps([reason.name for reason in CancelReason])} as const;",
        'export type StateName = (typeof STATES)[number]["name"];',
        'export type Shape = (typeof STATES)[number]["shape"];',
        "",
    ]
    return "\n".join(lines)


def sentences() -> str:
    """The module of sentences."""
    places = {phrase.name: sorted(phrase.places) for phrase in every_phrase()}
    return "\n".join(
        [
            "// Generated from src/horai/core/phrasebooks.py by tools/console_tables.py. Change it there.",
            f"export const SENTENCES: Record<string, readonly string[]> = {json.dumps(places, indent=1)};",
            "",
        ]
    )


def main() -> int:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "states.ts").write_text(states())
    (OUTPUT / "sentences.ts").write_text(sentences())
    return 0


if __name__ == "__main__":
    sys.exit(main())
