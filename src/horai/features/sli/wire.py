"""The service level on the wire."""

from datetime import date

from horai.wire.fields import Model


class ErrorBudgetOut(Model):
    """The late starts that the objective allows, those that there were, and the share that is left; below 0 if exceeded."""

    allowed: float
    spent: int
    left: float


class ServiceLevelDay(Model):
    """The starts of one day in UTC, and the share of them that was on time."""

    day: date
    started: int
    late: int
    share: float


class ServiceLevelOut(Model):
    """`GET /api/v1/scheduler/sli`: the share of due instances that started within 60 seconds, of all tenants together.

    `burnRate`: how many times faster than allowed the error budget was spent in the current hour and the one before.
    Minutes are added up every five minutes.
    """

    objective: float
    days: int
    started: int
    on_time: int
    share: float
    error_budget: ErrorBudgetOut
    burn_rate: float
    by_day: list[ServiceLevelDay]
