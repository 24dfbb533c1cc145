"""The assets that workflows and their nodes produce: updated by the decision that records the successes."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from horai.core.states import State
from horai.db.pool import AnyWrite
from horai.features.workflow import run_store
from horai.features.workflow.graph import RunState
from horai.features.workflow.run_store import HeldRun, NodeEnd, RunNode


async def update_assets(
    connection: AnyWrite, nodes: Sequence[RunNode], final: Mapping[int, NodeEnd], since: datetime
) -> None:
    """Update the assets of nodes that have succeeded and were not skipped."""
    made = [node.instance_id for node in nodes if node.is_producer and node.instance_id in final]
    if succeeded := [id_ for id_ in made if final[id_].state is State.SUCCESS and final[id_].cause is None]:
        await run_store.update_node_assets(connection, succeeded, since)


async def update_assets_of_runs(connection: AnyWrite, held: Sequence[HeldRun], phases: Mapping[int, RunState]) -> None:
    """Update the assets of workflows whose runs have succeeded, once for each run, also after a rerun."""
    if made := [run.id for run in held if run.is_producer and phases[run.id] is RunState.SUCCESS]:
        await run_store.update_run_assets(connection, made)
