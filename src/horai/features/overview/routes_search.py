"""RoleRoute for the search: from a few characters to a job, a workflow or an instance."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.digits import number_in
from horai.core.roles import AccessRole
from horai.db import instance_queries
from horai.features.overview import search_store
from horai.features.overview.wire_search import SearchOut
from horai.wire.fields import Model, Text

router = APIRouter(prefix="/api/v1/search", tags=["search"], route_class=RoleRoute)

SHOWN = 8


class SearchQuery(Model):
    """The text to search for."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    q: Annotated[Text, Field(min_length=1, max_length=200)]


@router.get("", responses={200: {"model": SearchOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_search(scope: ScopeDep, query: Annotated[SearchQuery, Query()]) -> Response:
    """Find jobs and workflows by a part of their names, and instances by their id or the beginning of their key."""
    tenant = scope.tenant_id
    async with scope.read() as connection:
        jobs = await search_store.search_jobs(connection, tenant, query.q, SHOWN)
        workflows = await search_store.search_workflows(connection, tenant, query.q, SHOWN)
        keyed = await search_store.search_keys(connection, tenant, query.q, SHOWN)
        number = number_in(query.q)
        one = None if number is None else await instance_queries.instance_by_id(connection, tenant, number)
    found = [*([] if one is None else [one]), *keyed]
    return answer(SearchOut.encode(jobs=jobs, workflows=workflows, instances=found[:SHOWN]))
