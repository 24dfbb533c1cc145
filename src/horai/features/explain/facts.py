"""The input of an explanation: all facts that the store has about one job around one instant."""

from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from horai.core.controls import Controls
from horai.core.health import HeldHost
from horai.core.job import Priority
from horai.core.queue import QueueSettings
from horai.core.root_cause import RootCause
from horai.core.shards import Role
from horai.core.states import CancelReason, State
from horai.core.stuck import LongRun, StuckRun
from horai.core.timing import Timing
from horai.core.workflow_neighbour import Parent
from horai.db.instance_relations import AwaitedChild
from horai.time.misfire import Stretch
from horai.time.zones import zone


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The job in question. `paused_at` is None while it is active; an empty `handler` means HTTP."""

    id: int
    timing: Timing
    created_at: datetime
    active_from: datetime
    paused_at: datetime | None = None
    missed_from: datetime | None = None
    """While the job is paused: the first instant whose slot is not created for it."""
    note: str | None = None
    handler: str = ""

    @property
    def place(self) -> ZoneInfo:
        """Return the zone in which its times are shown."""
        return zone("UTC" if self.timing.schedule is None else self.timing.schedule.timezone)


@dataclass(frozen=True, slots=True)
class InstanceFact:
    """An instance with the fire time in question. `is_parked`: it is in the parking lane."""

    id: int
    state: State
    is_slot: bool
    execute_time: datetime
    attempt: int = 0
    is_parked: bool = False
    key: str | None = None
    reason: CancelReason | None = None
    due: datetime | None = None
    node: str | None = None
    claimed_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    retry_count: int = 0
    is_lost: bool = False
    """Its last attempt was lost with its node."""
    is_suspended: bool = False
    """Its function sleeps, or waits for a signal."""
    is_rewinding: bool = False
    """It is marked: its finished steps are compensated before it ends."""
    concurrency_key: str | None = None


@dataclass(frozen=True, slots=True)
class OpenNode:
    """A node of a run that has not ended, and its instance; `state` is None for a map and while its row moves."""

    name: str
    instance_id: int
    state: State | None


@dataclass(frozen=True, slots=True)
class Other:
    """Another instance of the job that was under way at that moment."""

    id: int
    fire_time: datetime
    is_slot: bool
    is_parked: bool = False
    claimed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueFact:
    """The queue of an instance, and the number of its permits in use if it has a limit."""

    name: str
    settings: QueueSettings
    running: int | None = None
    is_held: bool = False
    """All dispatch of the tenant is paused."""
    tenant_limit: int | None = None
    """The tenant's quota `concurrency`."""
    tenant_running: int = 0
    """The permits of the tenant in use."""
    id: int = 0


@dataclass(frozen=True, slots=True)
class SkippedSlots:
    """A stored range of slots that were not created; `slots` is None if they were too many to count."""

    from_time: datetime
    to_time: datetime
    slots: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class CursorFact:
    """The position of the job's schedule: its upcoming slot (None: asleep), and the last job with that slot."""

    fire_time: datetime | None
    last_job: int = 0


@dataclass(frozen=True, slots=True)
class AwaitedAsset:
    """An asset that the job waits for, with the number of its updates that did not start the job yet.

    `is_any`: one such asset is enough.
    """

    name: str
    pending: int
    is_any: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of one moment.

    `others` were under way when the run was cancelled, or are under way now; `roles` are those of live nodes.
    """

    now: datetime
    job: JobFacts
    run: InstanceFact | None = None
    skip: SkippedSlots | None = None
    catchup: Stretch | None = None
    cursor: CursorFact | None = None
    queue: QueueFact | None = None
    others: tuple[Other, ...] = ()
    roles: frozenset[Role] = frozenset(Role)
    handlers: frozenset[str] | None = None
    """The functions that live nodes have; None if one of them has not reported yet."""
    parents: tuple[Parent, ...] = ()
    causes: tuple[RootCause, ...] = ()
    """The dead nodes that a BLOCKED instance waits for, directly or through other nodes."""
    awaited: tuple[AwaitedChild, ...] = ()
    """Instances that a suspended function has called and waits for."""
    version: int | None = None
    """The version of the code that a suspended instance waits for."""
    sensor_until: datetime | None = None
    """The deadline of an instance that is a sensor of a workflow."""
    stuck: StuckRun | None = None
    """The running instance, if it takes much longer than usual."""
    open_nodes: tuple[OpenNode, ...] = ()
    """Nodes that have not ended of the run of a workflow that the running instance has started."""
    holders: tuple[StuckRun, ...] = ()
    """The stuck runs that hold all slots of the queue; empty unless it is clogged."""
    long_holders: tuple[LongRun, ...] = ()
    """The runs that hold the slots of the queue, longest first, at most `HOLDERS_NAMED`; empty unless it is full."""
    held_host: HeldHost | None = None
    """The host of the job, if the node that claims the instance holds its calls."""
    key_limit: int = 1
    """The instances of a concurrency key that may run at once."""
    key_holders: tuple[int, ...] = ()
    """The instances that run with the concurrency key of the instance; at most `key_limit`."""
    lacks_key: bool = False
    """The secrets of the job's target cannot be opened by this server."""
    lacks_payload_key: bool = False
    """The payload of the instance is sealed and cannot be opened by this server."""
    priority: Priority | None = None
    controls: Controls = field(default_factory=Controls)
    """The limits of the governor."""
    is_frozen: bool = False
    """The tenant has frozen its low-priority work."""
    assets: tuple[AwaitedAsset, ...] = ()
    """The assets that the job waits for, if the instant has no instance."""
    is_paused_by_hand: bool = False
    """An operator holds the dispatch of the tenant or of all tenants; otherwise, a held queue means that the tenant is paused."""
