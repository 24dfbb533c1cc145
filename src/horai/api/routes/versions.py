"""Versions of definitions: list, read and restore them. Jobs, workflows, queues and reconcilers have the same three routes."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, VersionDep, takes
from horai.api.definition_json import KindsDep, encode_changes, encode_fate, older_of, version_fields
from horai.api.route import RoleRoute, needs
from horai.core.digits import number_in
from horai.core.errors import NotFound
from horai.core.roles import AccessRole
from horai.operations import definitions
from horai.text import Hint, Refused
from horai.wire.definitions import AppliedOut, RestoreIn, VersionDetail, VersionList, VersionOut

router = APIRouter(prefix="/api/v1", route_class=RoleRoute)

PLURALS = {"job": "jobs", "workflow": "workflows", "queue": "queues", "reconciler": "reconcilers"}


def _number(text: str) -> int:
    if (number := number_in(text, 9)) is None:
        raise NotFound(Refused.NO_VERSION(name="…", version=text[:40]), Hint.LIST_VERSIONS())
    return number


def _add_routes(kind: str, plural: str) -> None:
    """Add the routes of one kind of definition."""

    @needs(AccessRole.VIEWER)
    async def versions(scope: ScopeDep, kinds: KindsDep, name: str) -> Response:
        stored = await definitions.require_definition(scope, kinds[kind], name)
        rows = await definitions.versions_of(scope, stored)
        items = [VersionOut.encode(row, **version_fields(row, older_of(rows, row.version))) for row in rows]
        listed = VersionList.encode(items=items, current=stored.version, declared_by=stored.declared_by)
        return answer(listed, headers={"ETag": f'"{stored.version}"'})

    @needs(AccessRole.VIEWER)
    async def version(scope: ScopeDep, kinds: KindsDep, name: str, version: str) -> Response:
        stored = await definitions.require_definition(scope, kinds[kind], name)
        row = await definitions.require_kept(scope, stored, _number(version))
        older = older_of(await definitions.versions_of(scope, stored), row.version)
        return answer(VersionDetail.encode(row, changes=encode_changes(older, row), **version_fields(row, older)))

    @needs(AccessRole.ADMIN)
    async def restore(
        scope: ScopeDep,
        kinds: KindsDep,
        name: str,
        version: str,
        body: Annotated[Body[RestoreIn], Depends(body_of(RestoreIn))],
        if_version: VersionDep,
    ) -> Response:
        fate, after = await definitions.restore(
            scope, kinds[kind], name, _number(version), if_version, is_dry=body.shape.dry_run
        )
        return answer(encode_fate(fate), headers={"ETag": f'"{after.version}"'})

    path = f"/{plural}/{{name}}/versions"
    router.add_api_route(
        path,
        versions,
        name=f"get_{kind}_versions",
        tags=[plural],
        summary=f"List the kept versions of a {kind}, newest first.",
        responses={200: {"model": VersionList}},
    )
    router.add_api_route(
        path + "/{version}",
        version,
        name=f"get_{kind}_version",
        tags=[plural],
        summary=f"Read one version of a {kind}, and its changes.",
        responses={200: {"model": VersionDetail}},
    )
    router.add_api_route(
        path + "/{version}/restore",
        restore,
        methods=["POST"],
        name=f"restore_{kind}_version",
        tags=[plural],
        summary=f"Make a {kind} what it was at a version. A pause and secret values stay as they are now.",
        responses={200: {"model": AppliedOut}},
        openapi_extra=takes(RestoreIn, required=False),
    )


for _kind, _plural in PLURALS.items():
    _add_routes(_kind, _plural)
