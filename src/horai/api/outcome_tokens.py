"""Requests with an outcome token instead of a key: the caller is the target of one attempt."""

from fastapi import Request

from horai.api.authentication import Caller, unauthenticated
from horai.api.context import Context
from horai.core.actor import Actor, ActorKind
from horai.core.outcome_tokens import PREFIX, OutcomeToken, SignedToken, read_outcome_token
from horai.core.roles import AccessRole
from horai.db import nodes, tenants
from horai.db.pool import acquire
from horai.operations.signing_secrets import secrets_in_force

HEADER = "Horai-Outcome-Token"


def token_text_of(request: Request) -> str | None:
    """Return the token that a request sends, in a header of its own or as its bearer; None if it sends none."""
    if (text := request.headers.get(HEADER)) is not None:
        return text
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    bearer = bearer.strip()
    return bearer if scheme.lower() == "bearer" and bearer.startswith(PREFIX) else None


async def caller_by_token(request: Request, text: str) -> Caller:
    """Return the caller of a valid token for the instance of the path, and keep the token for the route.

    Raises `Unauthenticated` for a token that is forged, expired, or for another instance, always with the same text.
    """
    signed = read_outcome_token(text)
    if signed is None or str(signed.token.instance_id) != request.path_params.get("instance"):
        raise unauthenticated()
    tenant = await _tenant_of(request, signed)
    if tenant is None:
        raise unauthenticated()
    request.state.outcome_token = signed.token
    address = request.client.host if request.client else ""
    name = f"attempt {signed.token.attempt} of instance {signed.token.instance_id}"
    actor = Actor(ActorKind.KEY, "", name, AccessRole.WORKER, address, request.state.request_id)
    return Caller(actor, AccessRole.WORKER, signed.token.tenant_id, tenant)


async def _tenant_of(request: Request, signed: SignedToken) -> str | None:
    """Return the name of the tenant whose secret has signed the token; None if the token is not valid now."""
    context: Context = request.app.state.context
    token = signed.token
    async with acquire(context.pool) as connection:
        tenant = await tenants.find_tenant_by_id(connection, token.tenant_id)
        if tenant is None or await nodes.database_time(connection) > token.expires_at:
            return None
        secrets = await secrets_in_force(connection, context.keyring, token.tenant_id)
    return tenant.name if signed.is_signed_by(secrets) else None


def require_fence(request: Request, fence: int) -> None:
    """Raise `Unauthenticated` if the request comes with a token for another fence."""
    token: OutcomeToken | None = getattr(request.state, "outcome_token", None)
    if token is not None and token.fence != fence:
        raise unauthenticated()
