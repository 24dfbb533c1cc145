"""Instances of one job and of all jobs."""

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from horai.api.answer import answer
from horai.api.archived_instances import archived_page
from horai.api.body import Body, batch_body_of, body_of, payload_text
from horai.api.context import Context, ContextDep, IdempotencyKey, ScopeDep, is_keyed, required_once, scope_of, takes
from horai.api.cursors import cursor_after, instance_cursor
from horai.api.filters import FilterValues, instances_meant, states_of
from horai.api.idempotency import HEADER
from horai.api.instance_detail import instance_detail, known_of, readable_facts
from horai.api.instance_id import instance_id_of
from horai.api.outcome_tokens import require_fence
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, directly, needs
from horai.core.callbacks import clean_text, output_text
from horai.core.errors import Invalid
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.put import PutOptions, check_key
from horai.core.roles import AccessRole
from horai.core.settings import KEY_LIMIT
from horai.core.states import State
from horai.core.tags import own_tags
from horai.db import instance_lists
from horai.db.instance_lists import PageStart
from horai.operations import instances
from horai.operations.instances import AskedPut, Item
from horai.operations.outcome import report_outcome
from horai.operations.put import CREATED
from horai.operations.readable_values import readable_instances
from horai.operations.scope import Scope
from horai.text import Hint, Wrong
from horai.wire.fields import Text
from horai.wire.instances import (
    BatchAnswer,
    BatchIn,
    BatchResult,
    InstanceAnswer,
    InstanceList,
    InstanceOut,
    Narrowed,
    OutcomeIn,
    PutAnswer,
    PutIn,
    TriggerIn,
)

router = APIRouter(prefix="/api/v1", tags=["instances"], route_class=RoleRoute)

_PUT_BODY, _TRIGGER_BODY = body_of(PutIn), body_of(TriggerIn)
KeyPath = Annotated[str, Path(min_length=1, max_length=KEY_LIMIT)]


class InstanceQuery(Narrowed, PageQuery):
    """The filter, order and page of a list of instances."""

    order: Literal["newest", "oldest"] = "newest"
    archived: Annotated[bool, Field(description="Read the archive: `from` and `to` are required.")] = False


class AllInstancesQuery(InstanceQuery):
    """The filter, order and page of a list of instances of all jobs."""

    job: Text | None = None


async def _page(context: Context, scope: Scope, query: InstanceQuery, job: str | None) -> Response:
    upwards = query.order == "oldest"
    start = (
        PageStart.of_all(upwards=upwards) if query.cursor is None else PageStart(instance_cursor(query.cursor), upwards)
    )
    if query.archived:
        return await archived_page(context.archive, scope, query, job, start, query.limit)
    states = frozenset(State) if query.state is None else states_of(query.state)
    only = await instances_meant(scope, query, FilterValues(states, job))
    async with scope.read() as connection:
        page = await instance_lists.list_instances(connection, scope.tenant_id, start, query.limit, only)
        rows = await readable_instances(connection, scope, page.rows)
    cursor = None if page.next is None else cursor_after(*page.next)
    return answer(InstanceList.encode(items=rows, next_cursor=cursor))


@router.get("/jobs/{job}/instances", responses={200: {"model": InstanceList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_job_instances(
    context: ContextDep, scope: ScopeDep, job: str, query: Annotated[InstanceQuery, Query()]
) -> Response:
    """List a job's instances, live and finished: newest fire time first, or oldest first with `order=oldest`.

    With a filter that few instances match, a page may be short or empty: the list ends where `nextCursor` is null.
    """
    return await _page(context, scope, query, job)


@router.get("/instances", responses={200: {"model": InstanceList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_instances(context: ContextDep, scope: ScopeDep, query: Annotated[AllInstancesQuery, Query()]) -> Response:
    """List the instances of all jobs by fire time, with the same pages as for one job.

    With `archived=true`, the list has the instances of archived days; `from` and `to` are at most 31 days apart.
    """
    return await _page(context, scope, query, query.job)


@router.get("/instances/{instance}", responses={200: {"model": InstanceOut}})
@needs(AccessRole.VIEWER)
async def get_instance(scope: ScopeDep, context: ContextDep, instance: str) -> Response:
    """Read one instance with its attempts, their progress and log lines, and its timeline."""
    async with scope.read() as connection:
        row = await instances.read_one(connection, scope, instance_id_of(instance))
        known = await readable_facts(connection, scope, row, await known_of(connection, row))
    return answer(instance_detail(row, known, context.traces))


async def _trigger_directly(request: Request) -> Response:
    body, context = await _TRIGGER_BODY(request), request.app.state.context
    return await trigger(
        context, await scope_of(request), request.path_params["job"], body, request.headers.get(HEADER)
    )


@router.post(
    "/jobs/{job}/trigger",
    status_code=201,
    responses={201: {"model": InstanceAnswer}},
    openapi_extra=takes(TriggerIn, required=False),
)
@needs(AccessRole.OPERATOR)
@directly(_trigger_directly)
async def trigger(
    context: ContextDep,
    scope: ScopeDep,
    job: str,
    body: Annotated[Body[TriggerIn], Depends(_TRIGGER_BODY)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Run a job now, once per `Idempotency-Key`."""
    once = required_once(idempotency_key, body.raw)
    row = await context.triggers.trigger(scope, job, body.text_of("payload"), once)
    return answer(InstanceAnswer.encode(instance=row), 201, {"Location": f"/api/v1/instances/{row.id}"})


@router.post("/jobs/{job}/instances/batch", responses={200: {"model": BatchAnswer}}, openapi_extra=takes(BatchIn))
@needs(AccessRole.OPERATOR)
async def insert_batch(
    scope: ScopeDep, job: str, body: Annotated[Body[BatchIn], Depends(batch_body_of(BatchIn))]
) -> Response:
    """Create or reschedule up to 10,000 instances in one transaction."""
    given = body.shape.items
    items = [
        Item(item.execute_time, payload, item.key) for item, payload in zip(given, _payloads(body.raw), strict=True)
    ]
    answers = await instances.insert_batch(scope, job, items)
    results = [BatchResult.encode(made, key=item.key) for item, made in zip(given, answers, strict=True)]
    return answer(BatchAnswer.encode(items=results))


class _RawItem(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawBatch(msgspec.Struct):
    items: list[_RawItem]


def _payloads(raw: bytes) -> list[str | None]:
    return [payload_text(item.payload, "payload") for item in msgspec.json.decode(raw, type=_RawBatch).items]


async def _put_directly(request: Request) -> Response:
    job, key = request.path_params["job"], request.path_params["key"]
    body = await _PUT_BODY(request)
    return await put_instance(request, request.app.state.context, await scope_of(request), job, key, body)


@router.put(
    "/jobs/{job}/instances/{key:path}",
    responses={200: {"model": PutAnswer}, 201: {"model": PutAnswer}},
    openapi_extra=takes(PutIn, required=False),
)
@needs(AccessRole.OPERATOR)
@directly(_put_directly)
async def put_instance(
    request: Request,
    context: ContextDep,
    scope: ScopeDep,
    job: str,
    key: KeyPath,
    body: Annotated[Body[PutIn], Depends(_PUT_BODY)],
) -> Response:
    """Create or reschedule the instance of a key. A running instance is replaced; a successful one stays as it is."""
    wish = body.shape
    asked = AskedPut(check_key(key), wish.execute_time, body.text_of("payload"), PutOptions(wish.version, wish.again))
    put = instances.put_instance if is_keyed(request) else context.puts.put_instance
    verdict, row = await put(scope, job, asked)
    return answer(PutAnswer.encode(decision=verdict, instance=row), 201 if verdict in CREATED else 200)


@router.delete("/jobs/{job}/instances/{key:path}", responses={200: {"model": InstanceAnswer}})
@needs(AccessRole.OPERATOR)
async def delete_instance(scope: ScopeDep, job: str, key: KeyPath) -> Response:
    """Cancel the live instance of a key."""
    return answer(InstanceAnswer.encode(instance=await instances.cancel_by_key(scope, job, check_key(key))))


@router.post("/instances/{instance}/cancel", responses={200: {"model": InstanceAnswer}})
@needs(AccessRole.OPERATOR)
async def cancel_instance(scope: ScopeDep, instance: str) -> Response:
    """Cancel a live instance. A call that it has already sent is not undone."""
    return answer(InstanceAnswer.encode(instance=await instances.cancel_by_id(scope, instance_id_of(instance))))


@router.post(
    "/instances/{instance}/outcome", responses={200: {"model": InstanceAnswer}}, openapi_extra=takes(OutcomeIn)
)
@needs(AccessRole.OPERATOR, AccessRole.WORKER, or_token=True)
async def post_outcome(
    request: Request,
    context: ContextDep,
    scope: ScopeDep,
    instance: str,
    body: Annotated[Body[OutcomeIn], Depends(body_of(OutcomeIn))],
) -> Response:
    """Report the outcome of an attempt whose target answered 202.

    The target needs no key: it sends the header `Horai-Outcome-Token` of its call back, until the deadline of the call.
    """
    require_fence(request, body.shape.fence)
    row = await report_outcome(scope, instance_id_of(instance), body.shape.fence, _outcome(body.shape))
    if context.traces is not None:
        context.traces.reported(row.id, body.shape.fence)
    return answer(InstanceAnswer.encode(instance=row))


def _outcome(reported: OutcomeIn) -> Outcome:
    message = clean_text(reported.message or "")
    match reported.result:
        case "SUCCESS":
            return Succeeded(None if reported.output is None else _output(reported))
        case "FAIL_RETRYABLE":
            return FailedRetryable("RESULT_RETRYABLE", message)
        case "FAIL_UNRECOVERABLE":
            return FailedUnrecoverable("RESULT_UNRECOVERABLE", message, own_tags(reported.tags))


def _output(reported: OutcomeIn) -> str:
    text = output_text(reported.output)
    if text is None:
        raise Invalid.field("output", Wrong.OUTPUT_TOO_LARGE(), Hint.KEEP_RESULTS_ELSEWHERE())
    return text
