"""Definitions as files: export them, apply them, and the JSON Schema for editors."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from pydantic import ValidationError

from horai.api.answer import answer
from horai.api.body import Body, batch_body_of, invalid_shape
from horai.api.context import ScopeDep, takes
from horai.api.cursors import job_cursor, page_cursor
from horai.api.definition_json import KindsDep, encode_fate
from horai.api.paging import PageQuery
from horai.api.route import RoleRoute, needs
from horai.core.errors import HoraiError, Invalid
from horai.core.roles import AccessRole
from horai.operations import definitions
from horai.operations.definitions import AppliedDefinition, ApplyAction, DefinitionKind, Item, WrittenDefinition
from horai.text import Misshapen, Wrong
from horai.wire.definitions import ApplyAnswer, ApplyIn, DefinitionList, DefinitionOut, KindName

router = APIRouter(prefix="/api/v1/definitions", tags=["definitions"], route_class=RoleRoute)


class _RawApply(msgspec.Struct):
    definitions: list[msgspec.Raw]


@router.get("/schema")
@needs(AccessRole.VIEWER)
async def get_definition_schema(kinds: KindsDep) -> dict[str, Any]:
    """Read the JSON Schema of one definition in a file, for editors."""
    return schema_of(kinds.values())


@router.get("/{kind}", responses={200: {"model": DefinitionList}})
@needs(AccessRole.VIEWER)
async def get_definitions(
    scope: ScopeDep, kinds: KindsDep, kind: KindName, query: Annotated[PageQuery, Query()]
) -> Response:
    """List the definitions of one kind as files have them."""
    found = await kinds[kind].page(scope, job_cursor(query.cursor), query.limit)
    cursor = page_cursor(str(found[-1].id)) if len(found) == query.limit else None
    return answer(DefinitionList.encode(items=[DefinitionOut.encode(each) for each in found], next_cursor=cursor))


@router.post("/apply", responses={200: {"model": ApplyAnswer}}, openapi_extra=takes(ApplyIn))
@needs(AccessRole.ADMIN)
async def apply_definitions(
    scope: ScopeDep, kinds: KindsDep, body: Annotated[Body[ApplyIn], Depends(batch_body_of(ApplyIn))]
) -> Response:
    """Make stored definitions equal to the given ones: created, changed, unchanged or refused, each for itself.

    With `dryRun`, all of them are written in a transaction that is rolled back: the answer is what would happen. Without it,
    each is a transaction of its own; a refused definition does not keep the others from being written.
    """
    raws = msgspec.json.decode(body.raw, type=_RawApply).definitions
    is_dry = body.shape.dry_run
    fates: dict[int, AppliedDefinition] = {}
    items: dict[int, Item] = {}
    for position, (given, raw) in enumerate(zip(body.shape.definitions, raws, strict=True)):
        try:
            items[position] = _item(kinds, given, bytes(raw), items.values())
        except HoraiError as error:
            kind, name = (str(given.get(field) or "")[:128] for field in ("kind", "name"))
            fates[position] = AppliedDefinition(kind, name, ApplyAction.REFUSED, error=error)
    applied = await definitions.apply(scope, list(items.values()), is_dry=is_dry)
    fates |= dict(zip(items, applied, strict=True))
    shown = [encode_fate(fates[position]) for position in range(len(raws))]
    return answer(ApplyAnswer.encode(dry_run=is_dry, items=shown))


def _item(kinds: Mapping[str, DefinitionKind], given: Mapping[str, Any], raw: bytes, before: Collection[Item]) -> Item:
    """Return a definition of the request with its kind. Raises `Invalid` with every field whose shape is wrong."""
    kind = kinds.get(str(given.get("kind")))
    if kind is None:
        raise Invalid.field("kind", Misshapen.NOT_ALLOWED(expected=", ".join(kinds)))
    try:
        shape = kind.shape.model_validate(
            {name: value for name, value in given.items() if name != "kind"}, by_name=False
        )
    except ValidationError as error:
        raise invalid_shape(error.errors()) from error
    document = shape.model_dump(by_alias=True, exclude_unset=True, exclude={"payload"})
    written = WrittenDefinition(document, raw)
    if any(other is kind and each.name == written.name for other, each in before):
        raise Invalid.field("name", Wrong.DEFINED_TWICE())
    return kind, written


def schema_of(kinds: Iterable[DefinitionKind]) -> dict[str, Any]:
    """Return the JSON Schema of a definition: the fields that its `kind` has."""
    shared: dict[str, Any] = {}
    variants: list[dict[str, Any]] = []
    for kind in kinds:
        own = kind.shape.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        shared |= own.pop("$defs", {})
        own["properties"] = {"kind": {"const": kind.name}, **own["properties"]}
        own["required"] = ["kind", *own.get("required", ())]
        variants.append(own)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Definition",
        "description": "A job, workflow, queue or reconciler of Horai, as `horai apply` reads it.",
        "oneOf": variants,
        "$defs": shared,
    }
