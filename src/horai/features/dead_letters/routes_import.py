"""The route that imports dead letters from another cluster."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, batch_body_of, payload_text
from horai.api.context import ScopeDep, takes
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.dead_letters import arrivals
from horai.features.dead_letters.wire import ImportLettersIn, ImportLettersOut

router = APIRouter(prefix="/api/v1/dlq", tags=["dead letters"], route_class=RoleRoute)


class _RawLetter(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawLetters(msgspec.Struct):
    letters: list[_RawLetter]


@router.post("/import", responses={200: {"model": ImportLettersOut}}, openapi_extra=takes(ImportLettersIn))
@needs(AccessRole.ADMIN)
async def import_letters(
    scope: ScopeDep, body: Annotated[Body[ImportLettersIn], Depends(batch_body_of(ImportLettersIn))]
) -> Response:
    """Import dead letters of another cluster, as its export lists them. They can be replayed here.

    A letter is imported once, however often it is sent. The jobs must exist here by name.
    """
    raw = msgspec.json.decode(body.raw, type=_RawLetters).letters
    payloads = [payload_text(letter.payload, "payload") for letter in raw]
    given = list(zip(body.shape.letters, payloads, strict=True))
    told = await arrivals.import_letters(scope, given, dry_run=body.shape.dry_run)
    return answer(ImportLettersOut.encode(told, dry_run=body.shape.dry_run))
