"""The dependencies of the routes: the application's context, the caller's tenant and request headers.

They are coroutines although they await nothing: FastAPI would run a plain function in a thread at every request.
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel

from horai.api.authentication import Caller
from horai.api.request_headers import way_of
from horai.core.addresses import AddressPolicy
from horai.core.digits import number_in
from horai.core.errors import IdempotencyKeyRequired, Invalid
from horai.core.health import EngineHealth
from horai.db.pool import Pool, TenantPool
from horai.db.replicas import ReadReplicas
from horai.db.wakeups import Wakeups
from horai.operations.archive_place import ArchiveStore
from horai.operations.idempotency import Keyed
from horai.operations.job_hooks import JobHooks
from horai.operations.keyring import Keyring
from horai.operations.loop_time import LoopTime
from horai.operations.put_batches import PutBatches
from horai.operations.request_keys import Once
from horai.operations.scope import PlatformScope, Scope
from horai.operations.traces import Traces
from horai.operations.trigger_batches import TriggerBatches
from horai.text import Hint, Refused, Wrong
from horai.wire.health import Problem

S = TypeVar("S", Scope, PlatformScope)


@dataclass(frozen=True, slots=True)
class Context:
    """The objects that all requests share. `tenant` is that of requests without a key."""

    pool: Pool
    wakeups: Wakeups
    health: EngineHealth
    tenant_id: int
    tenant: str
    hooks: tuple[JobHooks, ...]
    sources: frozenset[str] = frozenset()
    audit_key_file: str | None = None
    """File of the key that verifies the signatures of the audit log."""
    is_isolated: bool = True
    """True if row-level security separates the tenants."""
    keyring: Keyring = field(default_factory=Keyring)
    loop_time: LoopTime = field(default_factory=LoopTime)
    brokers: frozenset[str] = frozenset()
    nats_brokers: frozenset[str] = frozenset()
    traces: Traces | None = None
    """None if traces are off."""
    callbacks: AddressPolicy = field(default_factory=AddressPolicy)
    """The addresses that calls for a tenant may dial."""
    public_url: str | None = None
    """The address of the console, for links."""
    archive: ArchiveStore | None = None
    """The directory or the bucket of the archive; None if this server has none."""
    replicas: ReadReplicas | None = None
    """The standbys that answer routes marked `may_lag`; None if this server has none."""
    puts: PutBatches = field(default_factory=PutBatches)
    triggers: TriggerBatches = field(default_factory=TriggerBatches)


async def context_of(request: Request) -> Context:
    """Return the application's context."""
    return request.app.state.context


async def caller_of(request: Request) -> Caller:
    """Return the caller that the route has authenticated."""
    return request.state.caller


def tenant_scope(request: Request) -> Scope:
    """Return the caller's tenant outside the transaction of an Idempotency-Key, for checks before the body is read."""
    context: Context = request.app.state.context
    caller: Caller = request.state.caller
    if caller.tenant_id is None or caller.tenant is None:
        raise TypeError("a route that reads a tenant's data serves a role without a tenant")
    return Scope(
        TenantPool(context.pool, caller.tenant_id),
        context.wakeups,
        caller.tenant_id,
        caller.tenant,
        caller.actor,
        context.hooks,
        sources=context.sources,
        brokers=context.brokers,
        nats_brokers=context.nats_brokers,
        keyring=context.keyring,
        reader=request.scope["state"].get("reader"),
    )


async def scope_of(request: Request) -> Scope:
    """Return the caller's tenant. For a write with an Idempotency-Key it is bound to the one transaction of the key."""
    scope = tenant_scope(request)
    if request.method != "GET":
        scope = replace(scope, actor=replace(scope.actor, via=way_of(request.headers)))
    return _keyed(request, scope)


def is_keyed(request: Request) -> bool:
    """Return whether the request has a transaction of its own, that of its Idempotency-Key."""
    return request.scope["state"].get("keyed") is not None


def _keyed(request: Request, scope: S) -> S:
    keyed: Keyed | None = request.scope["state"].get("keyed")
    return scope if keyed is None else keyed.bind(scope)


async def access_scope_of(request: Request) -> PlatformScope:
    """Return the scope of a route about keys and tenants. A caller without a tenant has that of keyless requests.

    The tenant is only that of Idempotency-Keys: such a route reads no tenant's data.
    """
    caller: Caller = request.state.caller
    context: Context = request.app.state.context
    tenant_id, tenant = caller.tenant_id or context.tenant_id, caller.tenant or context.tenant
    scope = PlatformScope(
        context.pool,
        context.wakeups,
        tenant_id,
        tenant,
        caller.actor,
        context.hooks,
        keyring=context.keyring,
        reader=request.scope["state"].get("reader"),
    )
    return _keyed(request, scope)


async def version_of(if_match: Annotated[str | None, Header()] = None) -> int | None:
    """Return the version that the caller has read, from `If-Match`, or None."""
    if if_match is None or if_match == "*":
        return None
    tag = if_match.removeprefix("W/").strip('"')
    if (number := number_in(tag)) is None:
        raise Invalid.field("If-Match", Wrong.NOT_OUR_ETAG(), Hint.SEND_ETAG())
    return number


def once_of(key: str | None, body: bytes) -> Once | None:
    """Return the request's Idempotency-Key with its body, or None if it has no key."""
    return None if key is None else Once(key, body)


def required_once(key: str | None, body: bytes, first: str = "instance") -> Once:
    """Return the key with the body. Raises if there is no key; `first` names the object that a repeat returns."""
    if key is None:
        raise IdempotencyKeyRequired(
            Refused.KEY_REQUIRED(),
            Hint.SEND_A_KEY(first=first),
        )
    return Once(key, body)


CallerDep = Annotated[Caller, Depends(caller_of)]
ContextDep = Annotated[Context, Depends(context_of)]
ScopeDep = Annotated[Scope, Depends(scope_of)]
AccessScopeDep = Annotated[PlatformScope, Depends(access_scope_of)]
VersionDep = Annotated[int | None, Depends(version_of)]
DryRunDep = Annotated[
    bool, Query(alias="dryRun", description="Answer what the change would lead to, and change nothing.")
]
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key")]


_TAKEN: dict[str, type[BaseModel]] = {"Problem": Problem}


def takes(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Return the OpenAPI of a body that `body_of` reads, and add the body's model to the document."""
    describe(model)
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def describe(model: type[BaseModel]) -> None:
    """Add a model that no route names as its response to the OpenAPI document. Raise if its name is taken."""
    if _TAKEN.setdefault(model.__name__, model) is not model:
        raise TypeError(f"two models of the OpenAPI document are named {model.__name__}")


def shapes_taken() -> tuple[type[BaseModel], ...]:
    """Return every model that routes read or that `describe` named."""
    return tuple(_TAKEN.values())
