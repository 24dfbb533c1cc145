"""Items of a map as a user reads them: page by page, with the state and the result of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from horai.core.errors import NotFound
from horai.core.node_results import own_result
from horai.core.sealed_values import SealedColumn
from horai.db.pool import TenantRead
from horai.features.workflow import map_store, rerun_store
from horai.features.workflow.map_store import ItemPage, ItemRow
from horai.features.workflow.rerun_store import NodeNow
from horai.features.workflow.run_store import SLACK
from horai.features.workflow.service import require_workflow
from horai.operations.readable_values import ValueReader
from horai.operations.scope import Scope
from horai.text import Hint, Refused


@dataclass(frozen=True, slots=True)
class MapItems:
    """A map of a run, and a page of its items that have an instance."""

    node: NodeNow
    items: Sequence[ItemRow]


async def read_items(scope: Scope, reference: str, run_id: int, name: str, page: ItemPage) -> MapItems:
    """Return a page of the items of a map, in order. Raises `NotFound` if there is no such run, or no such map in it.

    An item that was skipped has no result; that of a branch is its own result.
    """
    async with scope.read() as connection:
        workflow = await require_workflow(connection, scope, reference)
        run = await rerun_store.find_run(connection, workflow.row.id, run_id)
        nodes = [] if run is None else await rerun_store.nodes_now(connection, run)
        node = next((node for node in nodes if node.name == name), None)
        if run is None or node is None or node.map is None:
            raise NotFound(
                Refused.NOT_A_MAP(run=run_id, node=name[:128]),
                Hint.LISTED_AT(path="/api/v1/workflows/{workflow}/runs/{run}"),
            )
        rows = await map_store.items_page(connection, node.map.key, run.created_at - SLACK, page)
        return MapItems(node, await _readable(connection, scope, node, rows))


async def _readable(connection: TenantRead, scope: Scope, node: NodeNow, rows: Sequence[ItemRow]) -> list[ItemRow]:
    """Return items with results and error texts as the caller may see them."""
    if not node.is_sealed:
        return [replace(row, result=own_result(row.kept_result)) for row in rows]
    reader = ValueReader(scope)
    await reader.load(
        connection,
        (
            (node.job, column, text)
            for row in rows
            for column, text in ((SealedColumn.RESULT, row.kept_result), (SealedColumn.ERROR, row.error_msg))
        ),
    )
    return [
        replace(
            row,
            result=own_result(reader.json(node.job, SealedColumn.RESULT, row.kept_result)),
            error_msg=reader.text(node.job, SealedColumn.ERROR, row.error_msg),
        )
        for row in rows
    ]
