"""The runbook as an operator uses it: its sections, and a terminal that types their commands."""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pages import ROOT, blocks
from terminal import Ended, Terminal

PAGE = "docs/runbook.md"
_HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+)` \|.*?`(horai [^`]+)`", re.MULTILINE)


def sections() -> dict[str, list[list[str]]]:
    """Return the blocks of commands of each section, by its heading."""
    lines = (ROOT / PAGE).read_text().splitlines()
    found: dict[str, list[list[str]]] = {}
    for block in blocks(PAGE):
        assert block.language == "console", block
        assert not any(command.shown for command in block.commands), f"{block}: no test compares this output"
        heading = next(named[1] for line in reversed(lines[: block.line]) if (named := _HEADING.match(line)))
        found.setdefault(heading, []).append([command.text for command in block.commands])
    return found


def first_commands() -> dict[str, str]:
    """Return the first command of each alert, by the name in the first column of its table."""
    return dict(_ROW.findall((ROOT / PAGE).read_text()))


@dataclass
class Operator:
    """Types commands of the runbook, with other values for the addresses of the page. All of them print JSON."""

    directory: Path
    database: str
    server: str
    replaced: Mapping[str, str]
    typed: list[str] = field(default_factory=list[str])

    async def types(self, commands: Iterable[str]) -> list[Any]:
        """Type commands one after the other. Each must succeed; return what they print."""
        return [(await self.tries(command)).json for command in commands]

    async def tries(self, command: str, code: int = 0) -> Ended:
        """Type a command that exits with this code."""
        self.typed.append(command)
        words = shlex.split(command)
        assert words.pop(0) == "horai"
        terminal = Terminal(HORAI_SERVER=self.server, HORAI_DATABASE_URL=self.database, HORAI_JSON="1")
        done = await asyncio.to_thread(terminal.at(self.directory), *(self.replaced.get(word, word) for word in words))
        assert done.code == code, f"{command}\n{done.out}\n{done.err}"
        return done
