"""Two jobs of two hosts in one lane: the host of `bad` fails until a test says otherwise, that of `good` works."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import make
from stages import Workbench

from horai.core.calls import Call, HttpTarget
from horai.core.circuit_breaker import FEWEST_RESULTS, BreakerState
from horai.core.outcome import FailedRetryable, Outcome, Succeeded
from horai.engine.dispatch.dispatcher import Dispatcher

DOWN = FailedRetryable("HTTP_503", "down")
BAD, GOOD = "http://bad.test/hook", "http://good.test/hook"


@dataclass
class MovedClock:
    """A monotonic clock that a test moves ahead."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@dataclass
class Hosts:
    """An executor that answers as the hosts do, and reports to the gates as the HTTP executor does."""

    bench: Workbench
    down: set[str] = field(default_factory=lambda: {BAD})
    calls: list[Call] = field(default_factory=list[Call])

    def run(self, call: Call) -> Outcome:
        self.calls.append(call)
        assert isinstance(call.target, HttpTarget)
        outcome = DOWN if call.target.url in self.down else Succeeded()
        assert self.bench.gates is not None
        self.bench.gates.ended(call, outcome)
        return outcome

    def called(self) -> Counter[str]:
        return Counter(call.job for call in self.calls)


async def job_to(bench: Workbench, name: str, url: str, **fields: Any) -> None:
    await make.job(bench.scope, name, target={"type": "http", "url": url}, **fields)


async def with_bad_and_good(bench: Workbench, **fields: Any) -> tuple[MovedClock, Hosts, Dispatcher]:
    """Jobs of two hosts in one lane, and a dispatcher that runs both."""
    clock = bench.monotonic = MovedClock()
    hosts = Hosts(bench)
    await job_to(bench, "bad", BAD, **fields)
    await job_to(bench, "good", GOOD, **fields)
    return clock, hosts, bench.dispatcher(**{"": hosts})


async def run(bench: Workbench, dispatcher: Dispatcher) -> None:
    await bench.until_idle(dispatcher)
    await bench.settle()


async def open_breaker(bench: Workbench, dispatcher: Dispatcher) -> None:
    await make.many(bench.scope, FEWEST_RESULTS, job="bad")
    await run(bench, dispatcher)
    assert bench.gates is not None
    (held,) = bench.gates.held_hosts()
    assert held.state == BreakerState.OPEN
