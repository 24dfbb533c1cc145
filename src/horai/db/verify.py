"""Asks the database whether what must always hold does hold: one function, one statement of sql/verify.sql per question.

The numbers are those of docs/concepts/invariants.md; the S ones are the schema's own. Not asked here, because no row can tell: I6
(effects are counted at the receiver), I16 and I17 (their tables are yet to come), and the slots of cron
expressions in I7 (SQL cannot count them; `every` ones it can).
"""

from dataclasses import dataclass
from datetime import timedelta

from horai.db.catalog import sql
from horai.db.pool import Connection

EXAMPLES = 10
BOUND = timedelta(minutes=10)
STATEMENT_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question; `examples` are at most a few of the violations, in words."""

    invariant: str
    title: str
    violations: int
    examples: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no row speaks against it."""
        return self.violations == 0


@dataclass(frozen=True, slots=True)
class _Question:
    invariant: str
    title: str
    statement: str
    is_bounded: bool = False


QUESTIONS = (
    _Question("I1", "what is final is in history once", "verify_final_once"),
    _Question("I1", "what is final is not live", "verify_final_or_live"),
    _Question("I2", "an outcome is that of the row's own attempt and fence", "verify_outcome_fence"),
    _Question("I3", "an instance fires when its last reschedule says", "verify_reschedule_kept"),
    _Question("I3", "what was superseded has its successor", "verify_successor_made"),
    _Question("I4", "a key has at most one live instance", "verify_one_live_per_key"),
    _Question("I5", "nothing runs on a node that is gone", "verify_stuck_running", is_bounded=True),
    _Question("I5", "nothing due is left waiting while a node is there", "verify_overdue", is_bounded=True),
    _Question("I7", "a slot is made once", "verify_slot_once"),
    _Question("I7", "no slot of a fixed rate is missing, but for those skipped", "verify_slots_dense"),
    _Question("I8", "attempts and failures rise by one", "verify_attempts_rise"),
    _Question("I9", "RUNNING and having an owner are the same", "verify_running_has_owner"),
    _Question("I10", "a change of state has its event", "verify_change_told"),
    _Question("I11", "an instance's events are numbered without gaps", "verify_events_dense"),
    _Question("I12", "nothing starts before it is due", "verify_never_early"),
    _Question("I13", "what has left BLOCKED has its parents behind it", "verify_parents_done"),
    _Question("I14", "no queue has taken more than its limit allows", "verify_queue_limit"),
    _Question("I14", "what runs in a limited queue has a slot", "verify_running_has_slot", is_bounded=True),
    _Question("I15", "what belongs to a job is of its tenant", "verify_one_tenant"),
    _Question("S1", "DEAD and having a dead letter are the same", "verify_dead_has_letter"),
    _Question("S2", "what is parked will be moved on", "verify_parked_for_a_reason"),
    _Question("S3", "what waits is in a lane that there is", "verify_lane_known"),
    _Question("S4", "no row has missed its day's partition", "verify_no_strays"),
    _Question("S5", "no slot is held by a node that is gone", "verify_slots_held", is_bounded=True),
)


async def verify(connection: Connection, bound: timedelta = BOUND) -> list[Finding]:
    """Every question with its answer. Reads all there is, statement by statement; changes and locks nothing.

    `bound` is how long due or lost work may wait while a node is there.
    """
    return [await _ask(connection, question, bound) for question in QUESTIONS]


async def _ask(connection: Connection, question: _Question, bound: timedelta) -> Finding:
    arguments = (EXAMPLES, bound) if question.is_bounded else (EXAMPLES,)
    async with connection.transaction(readonly=True):
        rows = await connection.fetch(sql(question.statement), *arguments, timeout=STATEMENT_TIMEOUT)
    violations = rows[0]["violations"] if rows else 0
    return Finding(question.invariant, question.title, violations, tuple(row["example"] for row in rows))
