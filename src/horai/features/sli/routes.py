"""The route of the service level."""

from datetime import timedelta
from functools import reduce
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import AccessScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.core.service_level import OBJECTIVE
from horai.db import nodes
from horai.features.sli import store
from horai.features.sli.rules import LevelCounts, budget_of, burn_rate, by_day
from horai.features.sli.wire import ErrorBudgetOut, ServiceLevelDay, ServiceLevelOut
from horai.wire.fields import Model

router = APIRouter(prefix="/api/v1/scheduler", tags=["governor"], route_class=RoleRoute)
RECENT = timedelta(hours=2)
"""The period of the burn rate: the current hour and the one before."""


class ServiceLevelQuery(Model):
    """The period of the service level."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    days: Annotated[int, Field(ge=1, le=30)] = 30


@router.get("/sli", responses={200: {"model": ServiceLevelOut}})
@needs(AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_service_level(scope: AccessScopeDep, query: Annotated[ServiceLevelQuery, Query()]) -> Response:
    """Show the share of due instances that started within 60 seconds, and the error budget of 99.9 %."""
    async with scope.read() as connection:
        hours = await store.service_level_since(connection, timedelta(days=query.days))
        now = await nodes.database_time(connection)
    counts = reduce(LevelCounts.and_, (each for _, each in hours), LevelCounts())
    recent = reduce(LevelCounts.and_, (each for at, each in hours if at > now - RECENT), LevelCounts())
    return answer(
        ServiceLevelOut.encode(
            counts,
            objective=OBJECTIVE,
            days=query.days,
            share=round(counts.share, 6),
            error_budget=ErrorBudgetOut.encode(budget_of(counts)),
            burn_rate=burn_rate(recent),
            by_day=[
                ServiceLevelDay.encode(each, day=day, share=round(each.share, 6)) for day, each in by_day(hours).items()
            ],
        )
    )
