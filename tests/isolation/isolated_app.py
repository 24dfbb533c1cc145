"""An application whose functions do everything that a process of its own is there for."""

import asyncio
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from horai import Horai, Instance, RetryLater, Unrecoverable

app = Horai("isolated", database_url="postgresql://nobody.invalid/none")


@app.job
async def echo(instance: Instance[Any]) -> Any:
    return instance.payload


@app.job
def whoami() -> int:
    return os.getpid()


@app.job
def surroundings() -> dict[str, Any]:
    return {
        "cwd": str(Path.cwd()),
        "path": sys.path,
        "variable": os.environ.get("HORAI_TEST_VARIABLE"),
        "session": os.getsid(0),
        "pid": os.getpid(),
        "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
        "stdin": sys.stdin.read(),
    }


@app.job
async def told(instance: Instance[Any]) -> list[Any]:
    return [
        instance.id,
        instance.job,
        instance.key,
        instance.fire_time.isoformat(),
        instance.execute_time.isoformat(),
        instance.attempt,
        instance.fence,
        instance.idempotency_key,
        instance.unit,
    ]


@app.job
def raises(kind: str) -> None:
    raise {"retryable": ValueError, "unrecoverable": Unrecoverable, "later": lambda _: RetryLater("90s")}[kind](kind)


@app.job
def exits(code: int) -> None:
    os._exit(code)


@app.job
def signals_itself(number: int) -> None:
    os.kill(os.getpid(), number)
    threading.Event().wait()


@app.job
def eats_memory() -> None:
    limit = 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    bytearray(4 * limit)


@app.job
def spins(instance: Instance[Any]) -> None:
    instance.log(str(os.getpid()))
    while True:
        pass


@app.job
async def blocks_the_loop(instance: Instance[Any]) -> None:
    instance.log(str(os.getpid()))
    threading.Event().wait()


@app.job
def holds_the_interpreter(instance: Instance[Any]) -> None:
    """In C, without a look at anything else, for about for ever; what it has started goes on as well."""
    _start_another(instance)
    re.match(r"(a+)+$", "a" * 60 + "b")


@app.job
def has_a_family(instance: Instance[Any]) -> None:
    _start_another(instance)
    threading.Event().wait()


@app.job
def dies_before_its_family(instance: Instance[Any]) -> None:
    _start_another(instance)
    os._exit(1)


def _start_another(instance: Instance[Any]) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    instance.log(str(os.getpid()))
    instance.log(str(other.pid))


@app.job
def babbles() -> int:
    for _ in range(2_000):
        print("x" * 1_000)
    os.write(1, b"\x00\x00\x00\x01\xff")
    print("{}", file=sys.stderr)
    return os.getpid()


@app.job
def sized(length: int) -> str:
    return "x" * length


@app.job
def tells(instance: Instance[Any]) -> None:
    instance.progress(0.25, "a quarter")
    instance.log("half a pair: \ud800")
    instance.progress(0.5)


@app.job
def tells_much(instance: Instance[Any]) -> None:
    for step in range(100_000):
        instance.progress(step / 100_000)
    for _ in range(10_000):
        instance.log("again")
    instance.progress(1.0)


@app.job
def says_its_last(instance: Instance[Any]) -> None:
    instance.log("now")
    os._exit(7)


@app.job
def prints_its_last() -> None:
    print("printed before the end")
    os._exit(7)


@app.job
async def waits_for_the_end(instance: Instance[Any]) -> str:
    instance.log("waiting")
    await instance.cancelled()
    return "told"


@app.job
def looks_for_the_end(instance: Instance[Any]) -> str:
    instance.log("waiting")
    while not instance.is_cancelled:
        threading.Event().wait(0.01)
    return "seen"


said_too_late = threading.Semaphore(0)


@app.job
def leaves_a_thread(instance: Instance[Any]) -> None:
    def go_on() -> None:
        while True:
            instance.log("late")
            said_too_late.release()
            threading.Event().wait(0.001)

    threading.Thread(target=go_on, daemon=True).start()


@app.job
def outlasts_what_comes_late(instance: Instance[Any]) -> None:
    instance.log("in time")
    while said_too_late.acquire(blocking=False):
        pass
    for _ in range(10):
        said_too_late.acquire()


@app.job
def forks(instance: Instance[Any]) -> str:
    copy = os.fork()
    if copy == 0:
        instance.log("the copy")
        os._exit(0)
    os.waitpid(copy, 0)
    instance.log("the original")
    return "one answer"


@app.job
async def closes_everything() -> None:
    os.closerange(3, 256)


@app.job
async def dies_when_idle() -> int:
    asyncio.get_running_loop().call_later(0.01, os._exit, 9)
    return os.getpid()
