"""Instances of one job and of all jobs."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.archived_instances import archived_page
from horai.api.body import Body, batch_body_of, body_of, payload_text
from horai.api.context import Context, ContextDep, IdempotencyKey, ScopeDep, is_keyed, required_once, scope_of, takes
from horai.api.cursors import cursor_after
from horai.api.filters import FilterValues, instances_meant, states_of
from horai.api.idempotency import HEADER
from horai.api.instance_detail import instance_detail, known_of, readable_facts
from horai.api.instance_id import instance_id_of
from horai.api.outcome_tokens import require_fence
from horai.api.paging import TimedPageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, directly, needs
from horai.core.call_settings import CallSettings, call_settings
from horai.core.call_windows import CallWindow, call_window
from horai.core.callbacks import output_text
from horai.core.concurrency_keys import check_concurrency_key
from horai.core.errors import Invalid
from horai.core.limits import KEY_LIMIT
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.put import PutOptions, check_key
from horai.core.roles import AccessRole
from horai.core.states import State
from horai.core.stored_text import clean_text
from horai.core.tags import own_tags
from horai.db import instance_counts, instance_lists
from horai.db.instance_lists import InstanceFilter
from horai.operations import instances
from horai.operations.compensated_cancel import (
    CompensatedCancel,
    cancel_by_id_compensated,
    cancel_by_key_compensated,
)
from horai.operations.instances import AskedPut, Item
from horai.operations.outcome import report_outcome
from horai.operations.put import CREATED
from horai.operations.readable_values import readable_instances
from horai.operations.scope import Scope
from horai.text import Hint, Wrong
from horai.wire.counts import CountOut
from horai.wire.fields import Text
from horai.wire.instances import (
    BatchAnswer,
    BatchIn,
    BatchItem,
    BatchResult,
    CancelAnswer,
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
CompensateQuery = Annotated[
    bool, Query(description="Run the compensations of the finished steps of its durable function before it ends.")
]


class InstanceQuery(Narrowed, TimedPageQuery):
    """The filter, order and page of a list of instances by fire time."""

    archived: Annotated[bool, Field(description="Read the archive: `from` and `to` are required.")] = False


class AllInstancesQuery(InstanceQuery):
    """The filter, order and page of a list of instances of all jobs."""

    job: Text | None = None


class InstanceCountQuery(Narrowed):
    """The filter of a count of instances."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    job: Text | None = None


async def _page(context: Context, scope: Scope, query: InstanceQuery, job: str | None) -> Response:
    if query.archived:
        return await archived_page(context.archive, scope, query, job, query.start, query.limit)
    only = await _meant(scope, query, job)
    async with scope.read() as connection:
        page = await instance_lists.list_instances(connection, scope.tenant_id, query.start, query.limit, only)
        rows = await readable_instances(connection, scope, page.rows)
    cursor = None if page.next is None else cursor_after(*page.next)
    return answer(InstanceList.encode(items=rows, next_cursor=cursor))


async def _meant(scope: Scope, asked: Narrowed, job: str | None) -> InstanceFilter:
    states = frozenset(State) if asked.state is None else states_of(asked.state)
    return await instances_meant(scope, asked, FilterValues(states, job))


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


@router.get("/instances/count", responses={200: {"model": CountOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_instance_count(scope: ScopeDep, query: Annotated[InstanceCountQuery, Query()]) -> Response:
    """Count the instances that match, live and finished, with the filters of the list.

    The count reads the newest 100,000 live and the newest 100,000 finished instances; with `payload`, 2,000 of each.
    If there are others, `more` is true and at least `count` instances match.
    """
    only = await _meant(scope, query, query.job)
    async with scope.read() as connection:
        counted = await instance_counts.count_instances(connection, scope.tenant_id, only)
    return answer(CountOut.encode(counted))


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
    responses={200: {"model": InstanceAnswer}, 201: {"model": InstanceAnswer}},
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
    """Run a job now, once per `Idempotency-Key`. The status is 200 if `unique` found the instance of an earlier call."""
    once, is_new = required_once(idempotency_key, body.raw), True
    window, payload = call_window(body.shape.unique, None), body.text_of("payload")
    settings = _settings(body.shape)
    if window is None:
        row = await context.triggers.trigger(scope, job, payload, once, settings)
    else:
        row, is_new = await instances.trigger_once(scope, job, payload, once, window, settings)
    headers = {"Location": f"/api/v1/instances/{row.id}"}
    return answer(InstanceAnswer.encode(instance=row), 201 if is_new else 200, headers)


@router.post("/jobs/{job}/instances/batch", responses={200: {"model": BatchAnswer}}, openapi_extra=takes(BatchIn))
@needs(AccessRole.OPERATOR)
async def insert_batch(
    scope: ScopeDep, job: str, body: Annotated[Body[BatchIn], Depends(batch_body_of(BatchIn))]
) -> Response:
    """Create or reschedule up to 10,000 instances in one transaction."""
    given = body.shape.items
    items = [
        Item(
            item.execute_time,
            payload,
            item.key,
            _window(position, item),
            _settings(item, f"items.{position}."),
        )
        for position, (item, payload) in enumerate(zip(given, _payloads(body.raw), strict=True))
    ]
    answers = await instances.insert_batch(scope, job, items)
    results = [BatchResult.encode(made, key=item.key) for item, made in zip(given, answers, strict=True)]
    return answer(BatchAnswer.encode(items=results))


def _window(position: int, item: BatchItem) -> CallWindow | None:
    """Return the window of an item. Raises `Invalid` if it has a key, or a time beside `debounce`."""
    field = f"items.{position}."
    window = call_window(item.unique, item.debounce, field)
    if window is None:
        return None
    if item.key is not None:
        raise Invalid.field(field + window.option, Wrong.STANDS_BESIDE(other="key"))
    if window.sets_time and item.execute_time is not None:
        raise Invalid.field(field + window.option, Wrong.STANDS_BESIDE(other="executeTime"))
    return window


def _settings(given: TriggerIn | PutIn | BatchItem, field: str = "") -> CallSettings:
    key = check_concurrency_key(given.concurrency_key, f"{field}concurrencyKey")
    return call_settings(key, given.queue, given.priority, given.expires, field)


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
    intent, settings = PutOptions(wish.version, wish.again, wish.keep_steps), _settings(wish)
    asked = AskedPut(check_key(key), wish.execute_time, body.text_of("payload"), intent, False, settings)
    put = instances.put_instance if is_keyed(request) else context.puts.put_instance
    verdict, row = await put(scope, job, asked)
    return answer(PutAnswer.encode(decision=verdict, instance=row), 201 if verdict in CREATED else 200)


@router.delete("/jobs/{job}/instances/{key:path}", responses={200: {"model": CancelAnswer}})
@needs(AccessRole.OPERATOR)
async def delete_instance(scope: ScopeDep, job: str, key: KeyPath, compensate: CompensateQuery = False) -> Response:
    """Cancel the live instance of a key."""
    if compensate:
        return _compensated(await cancel_by_key_compensated(scope, job, check_key(key)))
    return answer(InstanceAnswer.encode(instance=await instances.cancel_by_key(scope, job, check_key(key))))


@router.post("/instances/{instance}/cancel", responses={200: {"model": CancelAnswer}})
@needs(AccessRole.OPERATOR)
async def cancel_instance(scope: ScopeDep, instance: str, compensate: CompensateQuery = False) -> Response:
    """Cancel a live instance. A call that it has already sent is not undone."""
    id_ = instance_id_of(instance)
    if compensate:
        return _compensated(await cancel_by_id_compensated(scope, id_))
    return answer(InstanceAnswer.encode(instance=await instances.cancel_by_id(scope, id_)))


def _compensated(cancel: CompensatedCancel) -> Response:
    return answer(CancelAnswer.encode(instance=cancel.instance, compensates=list(cancel.compensates)))


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
