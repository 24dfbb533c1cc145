"""Reasons why the scheduler is degraded, in addition to overdue loops and lost leases."""

from horai.text.phrase import Phrasebook


class Degraded(Phrasebook):
    """Reasons about all nodes together."""

    SCHEMA_NEWER = "The database has migration {number}, which a running node does not know: upgrade that node."
    MODE = "The governor is in the mode {mode}."
    DISPATCH_PAUSED = "An operator has paused all dispatch."
    CLOCK_BEHIND = "The clock of the database is {seconds} s behind the latest time it has reported: schedules wait until it catches up."
