"""`horai worker` as users run it: a directory with a module in it, and a process started there."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import psutil
from forked import HORAI, ForkedPopen
from terminal import clean_environment

from horai import Horai
from horai.sdk.job import Job

SHOP = """
import asyncio
import os
import time
from pathlib import Path

from horai import Horai

app = Horai("shop")
HERE = Path(__file__).parent


def note(text):
    with (HERE / "diary").open("a") as diary:
        diary.write(f"{text}\\n")


@app.job
async def greet(name: str) -> str:
    return f"hello {name}"


@app.job(queue="mail")
def mail() -> None:
    note("mail")


@app.job
async def hold(number: int) -> None:
    note(f"begun {number}")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    note(f"ended {number}")


@app.job
async def block() -> None:
    note("blocks")
    while not (HERE / "go").exists():
        time.sleep(0.01)


@app.job(isolation="process")
def apart() -> int:
    return os.getpid()
"""
READY = "Horai is ready: worker {} (greet, mail, hold, block, apart)"


class Shop:
    """A directory with the module `shop`."""

    def __init__(self, place: Path, source: str = SHOP) -> None:
        place.mkdir()
        self.place = place
        self.diary = place / "diary"
        self.diary.touch()
        self.write(source)

    def write(self, source: str) -> None:
        (self.place / "shop.py").write_text(source)

    def let_go(self) -> None:
        """End the functions that hold."""
        (self.place / "go").touch()

    def noted(self) -> list[str]:
        return self.diary.read_text().splitlines()

    @contextmanager
    def worker(
        self, url: str, *arguments: str, start: "type[subprocess.Popen[str]]" = ForkedPopen, **environment: str
    ) -> Generator["WorkerProcess"]:
        """`horai worker shop`, which is not left behind. It is forked with its imports done, unless told otherwise."""
        flags = ("--grace", "30s", "--lease-ttl", "3s", *arguments)
        given = {"HORAI_DATABASE_URL": url} if url else {}
        process = WorkerProcess(self.place, ["worker", "shop", *flags], given | environment, start)
        try:
            yield process
        finally:
            process.kill()


class WorkerProcess:
    """A worker in its own process. Its stdout is read line by line; its stderr is in `log`."""

    def __init__(
        self,
        place: Path,
        arguments: list[str],
        environment: dict[str, str],
        start: "type[subprocess.Popen[str]]" = ForkedPopen,
    ) -> None:
        self._log = place / "log"
        with self._log.open("a") as log:
            self._process = start(
                [HORAI, *arguments],
                env=clean_environment() | environment,
                cwd=place,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def children(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children()

    def ready(self) -> str:
        """The next line it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def started(self) -> Self:
        """Returns when it has said that it is ready."""
        assert self.ready().startswith("Horai is ready: "), self.log
        return self

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def ends(self, within: float = 30.0) -> int:
        """Its exit code."""
        return self._process.wait(within)

    def kill(self) -> None:
        """kill -9, unless it has ended; its children are waited for."""
        if self._process.poll() is None:
            children = self.children
            self._process.kill()
            psutil.wait_procs(children, timeout=30)
        with self._process:
            return


async def until(told: Callable[[], Any], within: float = 60.0) -> None:
    """Returns once it tells something; meanwhile wakes are sent."""
    async with asyncio.timeout(within):
        while not told():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def elsewhere(url: str) -> AsyncGenerator[Callable[[str], Job[..., Any]]]:
    """The jobs of the shop as another process knows them: by their names."""

    def never(instance: Any) -> None:
        raise AssertionError("runs in the worker only")

    async with Horai("shop", database_url=url) as app:
        yield lambda name: app.job(never, name=name)
