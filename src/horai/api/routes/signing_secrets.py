"""The secrets that sign a tenant's calls."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.idempotency import OnceShown
from horai.api.problems import problem
from horai.api.route import RoleRoute, needs
from horai.core.errors import Duplicate
from horai.core.roles import AccessRole
from horai.operations import signing_secrets
from horai.text import Hint, Refused
from horai.wire.signing_secrets import RotateIn, SigningSecretList

router = APIRouter(prefix="/api/v1/signing-secrets", tags=["signing-secrets"], route_class=RoleRoute)


@router.get("", responses={200: {"model": SigningSecretList}})
@needs(AccessRole.ADMIN)
async def get_signing_secrets(scope: ScopeDep) -> Response:
    """List the secrets that sign the tenant's calls, the newest first. Receivers verify with any of them."""
    found = await signing_secrets.list_secrets(scope)
    return answer(SigningSecretList.encode(items=found, next_cursor=None))


@router.post(
    "",
    status_code=201,
    responses={201: {"model": SigningSecretList}},
    openapi_extra=takes(RotateIn, required=False),
)
@needs(AccessRole.ADMIN)
async def rotate_signing_secret(
    scope: ScopeDep, body: Annotated[Body[RotateIn], Depends(body_of(RotateIn))]
) -> Response:
    """Create a new secret. The old ones keep signing beside it until `expireOld` (24h) is over."""
    valid = await signing_secrets.rotate(scope, body.shape.expire_old)
    newest = str(valid[0].id)
    shown = answer(SigningSecretList.encode(items=valid, next_cursor=None), 201)
    again = Duplicate(
        Refused.SECRETS_SHOWN_BEFORE(secret=newest),
        Hint.LIST_SIGNING_SECRETS(),
        extra={"secretId": newest, "state": "IN_FORCE"},
    )
    return OnceShown(shown, problem(again))
