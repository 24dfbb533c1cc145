"""Puts of one job that arrive at the same time (request_batches.py)."""

from collections.abc import Mapping, Sequence

from horai.core.put import PutDecision
from horai.db.instance_queries import InstanceRow
from horai.operations.instances import AskedPut, WrittenPut, answer_put, write_fresh_puts, write_puts
from horai.operations.request_batches import PATIENCE, RequestBatches
from horai.operations.scope import Scope


class PutBatches(RequestBatches[AskedPut, WrittenPut]):
    """The puts of a process that wait. New keys without a past are the common case."""

    async def put_instance(self, scope: Scope, reference: str, asked: AskedPut) -> tuple[PutDecision, InstanceRow]:
        """Create or reschedule the instance of a key, together with other puts of the job that wait."""
        written = await self._written(scope, reference, asked)
        return written.verdict, await answer_put(scope, written)

    async def _write_common(self, scope: Scope, job: str, asked: Sequence[AskedPut]) -> Mapping[int, WrittenPut]:
        """Of a key that occurs twice, the first put comes before the others."""
        firsts = {put.key: position for position, put in reversed([*enumerate(asked)])}
        made = await write_fresh_puts(scope, job, [asked[position] for position in firsts.values()], PATIENCE)
        return {firsts[key]: written for key, written in made.items()}

    async def _write_together(self, scope: Scope, job: str, asked: Sequence[AskedPut]) -> Sequence[WrittenPut]:
        return await write_puts(scope, job, asked, PATIENCE)

    async def _write_alone(self, scope: Scope, job: str, asked: AskedPut) -> WrittenPut:
        return (await write_puts(scope, job, [asked]))[0]
