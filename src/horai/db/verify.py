"""Checks of the invariants in the database: one function, and one statement of sql/verify*.sql per question.

The numbers are those of docs/concepts/invariants.md; those with S belong to the schema. Not checked here, because no
row shows it: I6 (effects are counted at the receiver), I16 and I17 (their tables do not exist yet), and the slots of
cron expressions in I7 (SQL cannot compute them; it can compute those of `every`).
"""

from dataclasses import dataclass
from datetime import timedelta

from horai.db.catalog import sql
from horai.db.pool import Platform

EXAMPLES = 10
BOUND = timedelta(minutes=10)
STATEMENT_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question. `examples` are up to `EXAMPLES` violations, in words."""

    invariant: str
    title: str
    violations: int
    examples: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether no row violates the invariant."""
        return self.violations == 0


@dataclass(frozen=True, slots=True)
class _Question:
    invariant: str
    title: str
    statement: str
    is_bounded: bool = False


QUESTIONS = (
    _Question("I1", "a final instance is in history exactly once", "verify_final_once"),
    _Question("I1", "a final instance is not live", "verify_final_or_live"),
    _Question("I2", "an outcome has the attempt and fence of its row", "verify_outcome_fence"),
    _Question("I3", "an instance has the time of its last reschedule", "verify_reschedule_kept"),
    _Question("I3", "a superseded instance has its successor", "verify_successor_made"),
    _Question("I4", "a key has at most one live instance", "verify_one_live_per_key"),
    _Question("I5", "no instance runs on a node that is gone", "verify_stuck_running", is_bounded=True),
    _Question("I5", "no due instance is left waiting while a node is live", "verify_overdue", is_bounded=True),
    _Question("I7", "a slot is created once", "verify_slot_once"),
    _Question("I7", "no slot of a fixed rate is missing, except skipped ones", "verify_slots_dense"),
    _Question("I8", "attempts and failures increase by one", "verify_attempts_rise"),
    _Question("I9", "an instance has an owner exactly while it is RUNNING", "verify_running_has_owner"),
    _Question("I10", "a change of state has its event", "verify_change_told"),
    _Question("I11", "an instance's events are numbered without gaps", "verify_events_dense"),
    _Question("I12", "no instance starts before it is due", "verify_never_early"),
    _Question("I13", "an instance leaves BLOCKED only after its parents succeeded", "verify_parents_done"),
    _Question("I14", "no queue has taken more than its limit allows", "verify_queue_limit"),
    _Question("I14", "a running instance of a limited queue has a slot", "verify_running_has_slot", is_bounded=True),
    _Question("I14", "no concurrency key runs more than its limit", "verify_key_limit"),
    _Question("I15", "every row of a job belongs to its tenant", "verify_one_tenant"),
    _Question("S1", "an instance has a dead letter exactly if it is DEAD", "verify_dead_has_letter"),
    _Question("S2", "every parked instance will be moved", "verify_parked_for_a_reason"),
    _Question("S3", "every waiting instance is in a lane that exists", "verify_lane_known"),
    _Question("S4", "no row is outside the partition of its day", "verify_no_strays"),
    _Question("S5", "no slot is held by a node that is gone", "verify_slots_held", is_bounded=True),
    _Question("S6", "a map has the items that it counts, and has ended after them", "verify_map_items"),
    _Question("S7", "a job starts when its assets were updated", "verify_asset_starts", is_bounded=True),
    _Question("S7", "an update starts an instance of the job that waits for it", "verify_asset_instances"),
)


async def verify(connection: Platform, bound: timedelta = BOUND) -> list[Finding]:
    """Answer every question. Reads all rows, statement by statement; changes and locks nothing.

    `bound` is the time that due or lost work may wait while a node is live.
    """
    return [await _ask(connection, question, bound) for question in QUESTIONS]


async def _ask(connection: Platform, question: _Question, bound: timedelta) -> Finding:
    arguments = (EXAMPLES, bound) if question.is_bounded else (EXAMPLES,)
    async with connection.transaction(readonly=True):
        rows = await connection.fetch(sql(question.statement), *arguments, timeout=STATEMENT_TIMEOUT)
    violations = rows[0]["violations"] if rows else 0
    return Finding(question.invariant, question.title, violations, tuple(row["example"] for row in rows))
