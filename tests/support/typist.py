"""Types what a page says, in its order, on a machine where Horai is installed and nothing else is."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from embedded_servers import copied
from forked import HORAI, ForkedPopen
from pages import ROOT, Block, Command
from terminal import Ended, Terminal

from horai.core.settings import EngineSettings
from horai.embedded import EmbeddedPostgres, EmbeddedSettings, url_of
from horai.process import prepare

BINARIES = str(Path(sys.executable).parent)
SHELL = Path(__file__).with_name("page_shell.py")
SERVER = "http://127.0.0.1:8470"
DATABASE = "://horai@db/horai"
"""The addresses of the server, and of a database elsewhere under any scheme, as pages write them."""
READY = "Horai is ready: "
LASTING = ("up", "node", "worker")
"""Commands of `horai` that go on until they are stopped."""
PATIENCE = 60.0


class Lasting:
    """A command that goes on. Both its streams go where the terminal would show them: to one file."""

    def __init__(
        self, words: Sequence[str], directory: Path, environment: dict[str, str], log: Path, *, is_forked: bool
    ) -> None:
        """Start it as users do, or by a fork, which spares the imports."""
        self.words = words
        self.log = log
        start, command = (ForkedPopen, [HORAI, *words[1:]]) if is_forked else (subprocess.Popen[str], words)
        with log.open("w") as streams:
            self._process = start(command, cwd=directory, env=environment, stdout=streams, stderr=subprocess.STDOUT)

    def until(self, pattern: str) -> re.Match[str]:
        """Returns when it has said so."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.log.read_text(), re.MULTILINE)) is None:
            assert self._process.poll() is None, f"{self.words} has ended:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"{pattern!r} is not what came:\n{self.log.read_text()}"
            time.sleep(0.02)
        return found

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        assert self._process.wait(timeout=PATIENCE) == 0, f"{self.words}:\n{self.log.read_text()}"

    def kill(self) -> None:
        """Nothing is left behind."""
        self._process.kill()
        self._process.wait()


class Typist:
    """One page's terminals: a directory, what goes on in it, and a Python.

    `is_plain`: every start is that of a user on a new machine. Otherwise commands are forked from a process with all
    imports, and the database is a copy of one that is new.
    """

    def __init__(self, directory: Path, *, is_plain: bool = False) -> None:
        self.directory = directory
        self._is_plain = is_plain
        self._known = {name: value for name, value in os.environ.items() if not name.startswith("HORAI_")}
        self._known |= {"HORAI_PORT": "0", "HORAI_DATA_DIR": str(directory / "data"), "NO_COLOR": "1"}
        self._known |= {"COLUMNS": "200", "PATH": f"{BINARIES}:{os.environ['PATH']}"}
        self._lasting: list[Lasting] = []
        self._python: ForkedPopen | None = None
        self._base = ""

    def command(self, command: Command) -> None:
        """Types one command, and compares what it says with what the page shows."""
        words = [self._meant(word) for word in shlex.split(command.text, comments=True)]
        if words[0] == "curl":
            curl(words[1:])
        elif words[0] == "horai" and words[1] in LASTING:
            self._begin(words, command)
        else:
            done = self._run(words)
            assert done.code == 0, f"{command.text}\n{done.out}\n{done.err}"
            assert re.search(self._shown(command), done.out, re.MULTILINE), f"{command}\n{done.out}"

    def _run(self, words: list[str]) -> Ended:
        if (
            words[0] == "horai"
        ):  # what goes on is started as users do; a start for each of these would take most of the time
            return Terminal(**self._known).at(self.directory)(*words[1:])
        directory = ROOT if words[0] == "make" else self.directory
        done = subprocess.run(
            words, check=False, cwd=directory, env=self._known, capture_output=True, text=True, timeout=2 * PATIENCE
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def _begin(self, words: list[str], command: Command) -> None:
        if words[1] == "up":
            self.stop()  # there is one terminal for it
            if not self._is_plain and not (self.directory / "data").exists():
                copied(new_data(self.directory.parent), self.directory / "data")
        log = self.directory / f"{words[1]}-{len(self._lasting)}.log"
        begun = Lasting(words, self.directory, self._known, log, is_forked=not self._is_plain)
        self._lasting.append(begun)
        if words[1] == "up":
            self._base = begun.until(f"^{READY}(http.*)$")[1]
            self._known["HORAI_SERVER"] = self._base
        begun.until(f"^{READY}.*$")
        begun.until(self._shown(command))

    def _meant(self, word: str) -> str:
        if DATABASE in word:
            word = word.replace(DATABASE, url_of(self.directory / "data").removeprefix("postgresql"))
        return word.replace(SERVER, self._base)

    def _shown(self, command: Command) -> str:
        """Return a pattern for the lines that the page shows.

        `…` in a line is anything, and between two lines there may be more.
        """
        lines = [line.replace(SERVER, self._base) for line in command.shown if line.strip() != "…"]
        patterns = [r"[^\n]*".join(map(re.escape, line.rstrip().split("…"))) for line in lines]
        return "^" + r"\s*$(?:.|\n)*?^".join(patterns) if patterns else ""

    def python(self, block: Block) -> None:
        """Runs a block, or writes it down when it is a file."""
        if block.file is not None:
            path = self.directory / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._meant(block.text))
            return
        shell = self._shell()
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(json.dumps({"code": self._meant(block.text), "place": str(block)}) + "\n")
        shell.stdin.flush()
        trouble = json.loads(shell.stdout.readline())
        assert not trouble, f"{block}\n{trouble}"

    def _shell(self) -> ForkedPopen:
        if self._python is None:
            self._python = ForkedPopen(
                [sys.executable, str(SHELL)],
                cwd=self.directory,
                env=self._known,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._python

    def stop(self) -> None:
        """Ends what goes on, the last begun first; each must end well."""
        if self._python is not None:
            self._python.communicate(timeout=PATIENCE)
            self._python = None
        while self._lasting:
            self._lasting[-1].stop()
            self._lasting.pop()

    def kill(self) -> None:
        """After something went wrong."""
        if self._python is not None:
            self._python.kill()
            self._python.communicate()
        for each in self._lasting:
            each.kill()


@contextmanager
def typing(directory: Path, *, is_plain: bool = False) -> Generator[Typist]:
    """A typist who leaves nothing behind."""
    directory.mkdir()
    directory.chmod(0o755)
    typist = Typist(directory, is_plain=is_plain)
    try:
        yield typist
        typist.stop()
    finally:
        typist.kill()


def new_data(place: Path) -> Path:
    """Return a data directory as the first start of `horai up` makes it; it is made once for each place."""
    made = place / "new-data"

    async def make() -> None:
        server = EmbeddedPostgres(EmbeddedSettings(made))
        await server.start()
        await prepare(server.url, EngineSettings())
        await server.stop()

    if not made.exists():
        asyncio.run(make())
    return made


def curl(words: list[str]) -> None:
    """The little of curl that the pages use, so that the test needs none."""
    method, headers, data, url = "GET", dict[str, str](), None, ""
    rest = iter(words)
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-d":
                data = next(rest).encode()
            case _:
                url = word
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.status in {200, 201}
        json.load(response)
