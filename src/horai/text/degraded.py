"""Why the scheduler is degraded, beside loops that are overdue and leases that are not held."""

from horai.text.phrase import Phrasebook


class Degraded(Phrasebook):
    """Said of all nodes together."""

    SCHEMA_NEWER = "The database has migration {number}, which a running node does not know: upgrade that node."
    CLOCK_BEHIND = "The clock of the database is {seconds} s behind the latest time it has told: schedules wait until it catches up."
