"""Definitions of queues as files and as kept versions."""

from horai.core.errors import HoraiError, NotFound
from horai.core.queue import checked
from horai.db.queues import list_queues
from horai.operations import queues
from horai.operations.definitions import DefinitionKind, WrittenDefinition
from horai.operations.scope import Scope
from horai.operations.versions import StoredDefinition
from horai.text import Hint, Refused
from horai.wire.queues import QueueDefinition


async def _find(scope: Scope, reference: str) -> StoredDefinition | None:
    """Return a queue that was configured."""
    try:
        queue = await queues.read_queue(scope, reference)
    except NotFound:
        return None
    return queues.definition(queue) if queue.version else None


async def _page(scope: Scope, after: int, limit: int) -> list[StoredDefinition]:
    async with scope.read() as connection:
        rows = await list_queues(connection, scope.tenant_id, after, limit)
    return [queues.definition(row) for row in rows]


async def _put(scope: Scope, written: WrittenDefinition, known: StoredDefinition | None) -> None:
    settings = checked(written.document)
    if known is None:
        await queues.set_queue(scope, written.name, settings, 0)
        return
    now = await queues.read_queue(scope, known.name)
    wanted = queues.held_as(settings, now.settings)
    if wanted != now.settings:
        await queues.set_queue(scope, known.name, wanted, known.version)


def _not_found(name: str) -> HoraiError:
    return NotFound(Refused.NO_QUEUE(name=name[:64]), Hint.QUEUE_COMES())


KIND = DefinitionKind("queue", QueueDefinition, _find, _page, _put, _not_found)
