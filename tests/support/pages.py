"""The pages of the documentation as a reader meets them: blocks of code, in their order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDENTED = "indented"
"""Code without a fence: its language is unknown, so no test can run it."""
_FENCE = re.compile(r"^( *)```(\S*)")
_FILE = re.compile(r"# ([\w/]+\.py)")
_SPACE = " " * 4


@dataclass(frozen=True, slots=True)
class Command:
    """A command typed at a prompt, and the lines that the page shows below it."""

    text: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of code on a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that it is, when its first line says so: `# tasks.py`."""
        named = _FILE.fullmatch(self.text.partition("\n")[0])
        return named[1] if named else None

    @property
    def commands(self) -> list[Command]:
        """Return the commands that the block types, in order."""
        typed = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
        assert not typed[0].strip(), f"{self}: output without a command"
        return [Command(lines[0], tuple(lines[1:])) for lines in (part.rstrip().splitlines() for part in typed[1:])]


def pages() -> list[str]:
    """All that a user may read: the READMEs, the documentation, the examples."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def blocks(page: str) -> list[Block]:
    """The code of a page."""
    return list(_blocks(page, (ROOT / page).read_text().splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    numbered = iter(enumerate(lines, 1))
    before = ""
    for number, line in numbered:
        if fence := _FENCE.match(line):
            inside = [text[len(fence[1]) :] for _, text in _until_fence(numbered)]
            yield Block(page, number, fence[2], "\n".join(inside) + "\n")
        elif line.startswith(_SPACE) and not before.strip():
            yield Block(page, number, INDENTED, line)
        before = line


def _until_fence(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if _FENCE.match(line):
            return
        yield number, line
