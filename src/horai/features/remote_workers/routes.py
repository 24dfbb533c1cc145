"""The WebSocket of remote workers."""

from fastapi import APIRouter, FastAPI
from starlette.websockets import WebSocket

from horai.api.authentication import Authenticator, Caller, credentials_of
from horai.api.context import Context
from horai.api.denied_writes import DeniedWrites
from horai.api.problems import problem
from horai.api.route import RoleRoute
from horai.core.actor import Actor, ActorKind
from horai.core.errors import Forbidden, HoraiError, Unauthenticated
from horai.core.roles import AccessRole
from horai.db.pool import TenantPool
from horai.features.remote_workers.connection import ConnectionParts, WorkerConnection
from horai.features.remote_workers.hub import WorkerHub
from horai.features.remote_workers.phrases import WorkerWords
from horai.features.remote_workers.session import SessionOwner
from horai.features.remote_workers.session_limits import SessionLimits
from horai.operations.scope import Scope
from horai.text import Hint
from horai.wire.worker_messages import PATH

router = APIRouter(route_class=RoleRoute)

ROUTE = f"GET {PATH}"
ROLES = (AccessRole.WORKER, AccessRole.ADMIN)
"""A key of the role admin may also declare the jobs of its code. It could create a key of the role worker anyway."""


@router.websocket(PATH)
async def connect_worker(socket: WebSocket) -> None:
    """Serve a worker that has a key with the role `worker`. docs/reference/worker-protocol.md describes the messages."""
    authenticator: Authenticator = socket.app.state.authenticator
    caller: Caller | None = None
    try:
        credentials = credentials_of(socket)
        caller = await authenticator.caller_of(credentials)
        caller.require(ROLES)
        scope = _scope_of(socket, caller)
    except HoraiError as error:
        if isinstance(error, Unauthenticated | Forbidden):
            await _record(socket, caller, error)
        await socket.send_denial_response(problem(error))
        return
    hub: WorkerHub = socket.app.state.workers
    session_limits: SessionLimits = socket.app.state.session_limits
    owner = SessionOwner(scope.tenant_id, scope.tenant, caller.actor.id)
    parts = ConnectionParts(
        hub,
        scope,
        owner,
        socket.app.state.limits,
        session_limits,
        lambda: authenticator.is_still_allowed(credentials),
        socket.headers.get("host", ""),
        caller.role in {None, AccessRole.ADMIN},
    )
    await WorkerConnection(socket, parts).serve()


def _scope_of(socket: WebSocket, caller: Caller) -> Scope:
    context: Context = socket.app.state.context
    if caller.tenant_id is None or caller.tenant is None:
        raise Forbidden(WorkerWords.NOT_ITS_TENANT(), Hint.ASK_FOR_ROLE(needed=AccessRole.WORKER))
    return Scope(
        TenantPool(context.pool, caller.tenant_id),
        context.wakeups,
        caller.tenant_id,
        caller.tenant,
        caller.actor,
        context.hooks,
        keyring=context.keyring,
    )


async def _record(socket: WebSocket, caller: Caller | None, denied: HoraiError) -> None:
    denied_writes: DeniedWrites = socket.app.state.denied_writes
    address = socket.client.host if socket.client else ""
    unknown = Actor(ActorKind.KEY, "", "", "", address, socket.state.request_id)
    tenant, actor = (None, unknown) if caller is None else (caller.tenant_id, caller.actor)
    await denied_writes.note(tenant, actor, ROUTE, denied.status)


def prepare(app: FastAPI) -> None:
    """Open the hub of the workers that connect to this server."""
    app.state.workers = WorkerHub()
    app.state.session_limits = SessionLimits(app.state.workers, app.state.limits)
