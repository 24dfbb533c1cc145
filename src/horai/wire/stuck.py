"""Stuck runs, clogged queues and blocked workflow runs on the wire."""

from datetime import datetime
from typing import Annotated

from horai.wire.encode import From
from horai.wire.fields import Id, Model
from horai.wire.sentences import Sentence


class StuckRunOut(Model):
    """A run that takes much longer than its job usually does. `node` is null while it waits for a workflow run.

    `p95Ms` needs 20 known successes of the job; with fewer, `longestMs` says how long the longest of them took. Both are null if
    no success is known: the run has then taken longer than 30 minutes, and nothing says how long it usually takes.
    """

    id: Annotated[Id, From("run.id")]
    job: Annotated[str, From("run.job")]
    job_id: Annotated[Id, From("run.job_id")]
    queue: Annotated[str, From("run.queue")]
    key: Annotated[str | None, From("run.key")]
    attempt: Annotated[int, From("run.attempt")]
    node: Annotated[str | None, From("run.node")]
    started_at: Annotated[datetime, From("run.claimed_at")]
    p95_ms: int | None
    """Milliseconds within which 95 % of the successful runs of the job ended."""
    longest_ms: int | None
    """Milliseconds of the longest of fewer than 20 successful runs of the job."""
    stuck_since: Annotated[datetime, From("stuck_at")]


class StuckRunList(Model):
    """A page of stuck runs, longest first."""

    items: list[StuckRunOut]
    next_cursor: str | None


class ClogOut(Model):
    """Stuck runs hold all slots of a queue. `waiting`: due instances that have not started, counted up to 2,000.

    `holders` are the runs that hold the slots, longest first; only the first 20 are listed.
    """

    since: datetime
    slots: int
    waiting: int
    holders: list[StuckRunOut]


class CloggedQueueOut(ClogOut):
    """A clogged queue."""

    name: str


class CloggedQueueList(Model):
    """A page of clogged queues."""

    items: list[CloggedQueueOut]
    next_cursor: str | None


class StuckCauseOut(StuckRunOut):
    """A stuck run with what waits behind it.

    `waiting`: due instances that wait for a slot of its queue, counted up to 2,000; 0 while the queue has a free slot. `blocks`: nodes of
    its workflow run that wait for its end, directly or through other nodes.
    """

    waiting: int
    blocks: int


class HolderOut(Model):
    """A run that holds a slot of a full queue."""

    id: Id
    job: str
    job_id: Id
    key: str | None
    node: str | None
    started_at: Annotated[datetime, From("claimed_at")]


class FullQueueOut(Model):
    """A queue without a free slot in which an instance has been due for more than a minute.

    `since`: when the oldest instance that waits was due. `waiting`: due instances that have not started, counted up to 2,000.
    `holders`: the runs that hold the slots, longest first; only the first five are listed.
    """

    name: str
    slots: int
    since: datetime
    waiting: int
    holders: list[HolderOut]


class RootCauseOut(Model):
    """A dead node that blocks a run. `blocks`: the nodes that wait for it, directly or through other nodes.

    `errorMsg` is null in lists if the job of the node is encrypted.
    """

    node: str
    job: str
    job_id: Id
    instance_id: Id
    error_code: str | None
    error_msg: str | None
    died_at: datetime | None
    blocks: list[str]
    advice: str
    advice_said: Sentence


class BlockedRunOut(Model):
    """A workflow run in which nothing is under way, the nodes that block it, and the number of nodes that wait."""

    id: Id
    workflow: str
    workflow_id: Id
    fire_time: datetime
    waiting: int
    root_causes: list[RootCauseOut]


class BlockedRunList(Model):
    """A page of blocked runs, newest fire time first."""

    items: list[BlockedRunOut]
    next_cursor: str | None
