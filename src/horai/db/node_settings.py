"""Settings of instances that are nodes of workflows: one function per statement of sql/node_settings.sql."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from horai.core.job import stored_retry
from horai.core.retry import RetryPolicy
from horai.db.catalog import sql
from horai.db.pool import AnyRead
from horai.time.durations import parse_duration


@dataclass(frozen=True, slots=True)
class WorkflowNodeSettings:
    """The settings of one node. `interval_start` is that of its run; None if the run has no data interval."""

    interval_start: datetime | None
    retry: RetryPolicy | None = None
    """The retry policy of the node; None: that of its job."""
    poll: timedelta | None = None
    """The time until a sensor asks again; None for other nodes."""

    def policy(self, of_job: RetryPolicy) -> RetryPolicy:
        """Return the retry policy of an instance of the node."""
        own = of_job if self.retry is None else self.retry
        return own if self.poll is None else replace(own, poll=self.poll)


async def settings_of_nodes(connection: AnyRead, instance_ids: Collection[int]) -> dict[int, WorkflowNodeSettings]:
    """Return the settings by instance; instances that are not nodes are left out. The items of a map share one object."""
    settings: dict[int, WorkflowNodeSettings] = {}
    for row in await connection.fetch(sql("settings_of_nodes"), list(instance_ids)):
        poll = None if row["poll"] is None else parse_duration(row["poll"])
        of_node = WorkflowNodeSettings(row["interval_start"], stored_retry(row["retry"]), poll)
        settings |= dict.fromkeys(row["ids"], of_node)
    return settings


async def retry_of_node(connection: AnyRead, instance_id: int, of_job: RetryPolicy) -> RetryPolicy:
    """Return the retry policy of an instance that may be a node; that of its job if it is none."""
    found = (await settings_of_nodes(connection, [instance_id])).get(instance_id)
    return of_job if found is None else found.policy(of_job)
