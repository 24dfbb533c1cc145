"""The stages that make workflows run, for tests that go step by step."""

import json
from typing import Any

import make
from stages import Workbench

from horai.core.calls import Call
from horai.core.outcome import Accepted, FailedUnrecoverable, Outcome, Succeeded
from horai.db.pool import acquire
from horai.features.workflow.definition import WORKFLOW_HANDLER
from horai.features.workflow.executor import WorkflowExecutor

DEATH = FailedUnrecoverable("BROKEN", "It broke.")


class Orchestra:
    """The stages that make a workflow run."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.workflow_stage = bench.workflow_stage()
        self.starter = WorkflowExecutor(lambda: acquire(make.platform(bench.scope)), bench.scope.wakeups)
        self.dispatcher = bench.dispatcher(**{WORKFLOW_HANDLER: self.starter})
        bench.executor.gate.set()

    def answer(self, *dead: str, **outputs: Any) -> None:
        """Nodes of these names die; these return something; the others just succeed."""

        def of(call: Call) -> Outcome | Accepted:
            if call.job in dead:
                return DEATH
            return Succeeded(json.dumps(outputs[call.job])) if call.job in outputs else Succeeded()

        self.bench.executor.answer = of

    async def play(self) -> None:
        """Until nothing more happens by itself."""
        before = -1
        while before != len(self.bench.executor.calls):
            before = len(self.bench.executor.calls)
            for _ in range(2):
                await self.bench.until_idle(self.dispatcher)
                await self.bench.settle()
                await self.workflow_stage.step(self.bench.clock.now())

    @property
    def played(self) -> list[str]:
        return [call.job for call in self.bench.executor.calls]

    def calls_of(self, node: str) -> list[Call]:
        return [call for call in self.bench.executor.calls if call.job == node]
