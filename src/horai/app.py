"""The application: routes, problems, guard, and the OpenAPI that describes them."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.types import ASGIApp

from horai import __version__
from horai.api import problems, reference
from horai.api.authentication import Authenticator
from horai.api.connection_limits import ConnectionLimits
from horai.api.console import Console
from horai.api.context import Context, shapes_taken
from horai.api.denied_writes import DeniedWrites
from horai.api.direct_routes import DirectRoutes
from horai.api.guard import Guard
from horai.api.hosts import HostRules
from horai.api.idempotency import HEADER, WRITES
from horai.api.outcome_tokens import HEADER as TOKEN_HEADER
from horai.api.replica_reads import ASKS, LAG_MARK, SAYS
from horai.api.replica_reads import HEADER as READ_HEADER
from horai.api.request_turns import RequestTurns
from horai.api.route import TOKEN_MARK
from horai.api.routes import (
    definitions,
    health,
    history,
    instances,
    job_count,
    jobs,
    jobs_matching,
    queues,
    schedules,
    signing_secrets,
    versions,
)
from horai.api.server_spans import ServerSpans
from horai.core.settings import ServerLimits
from horai.features.registry import FEATURES
from horai.operations import job_definitions, queue_definitions
from horai.operations.definitions import DefinitionKind
from horai.operations.request_keys import KEY_LIMIT

KEY_SAYS = (
    "Identifies the request: it takes effect once, even if it is sent several times within 7 days. A repeat gets the "
    "answer of the first request with the header Idempotency-Replayed. A repeated create or trigger gets 409 with the "
    "id and the state of the object that the first one created."
)

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own spans and logs hold URLs with their queries, and bodies. Those of Horai do not (server_spans.py)."""

KERNEL = (
    job_count,
    jobs_matching,
    jobs,
    instances,
    history,
    queues,
    health,
    schedules,
    signing_secrets,
    versions,
    definitions,
)


class _Application(FastAPI):
    """FastAPI without its own layers around the guard, which answers every error. Their telemetry is off."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return the layers from ours inwards."""
        layer: Any = super().build_middleware_stack()
        while not isinstance(layer, ServerSpans | Guard):
            layer = layer.app
        return layer


def create_app(context: Context, limits: ServerLimits | None = None, hosts: HostRules | None = None) -> FastAPI:
    """Return the REST application of a context.

    It serves the routes of the modules as they are. `include_router` would build each of them a second time, at the
    first request that passes it: a fifth of a second of CPU time for every application.
    """
    limits, hosts = limits or ServerLimits(), hosts or HostRules()
    app = _Application(
        title="Horai",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    app.state.context = context
    app.state.authenticator = Authenticator(context.pool, context.wakeups, (context.tenant_id, context.tenant))
    app.state.denied_writes = DeniedWrites(context.pool)
    app.state.limits, app.state.access = limits, hosts.access
    app.state.door = ConnectionLimits(limits)
    app.state.turns = RequestTurns(context.loop_time)
    app.state.closing = list[Callable[[], None]]()
    app.state.kinds = definition_kinds()
    for module in (*KERNEL, *(feature.module(name) for feature in FEATURES for name in feature.routes)):
        app.router.routes += module.router.routes
        if hasattr(module, "prepare"):
            module.prepare(app)
    app.router.routes += reference.router.routes
    app.router.default = Console(otherwise=app.router.not_found)
    problems.install(app)
    app.add_middleware(DirectRoutes, owner=app, routes=instances.router.routes)
    app.add_middleware(Guard, hosts=hosts)
    if context.traces is not None:
        app.add_middleware(ServerSpans, traces=context.traces)
    app.openapi = lambda: openapi_of(app)
    return app


def definition_kinds() -> dict[str, DefinitionKind]:
    """Return the kinds of definitions by name: those of jobs and queues, and those of features."""
    found = (feature.module(feature.kind).KIND for feature in FEATURES if feature.kind is not None)
    return {kind.name: kind for kind in (job_definitions.KIND, queue_definitions.KIND, *found)}


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the document at /openapi.json. Bodies are parsed by hand, so their schemas are added here."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes, description=__doc__)
        _, shapes = models_json_schema(
            [(body, "validation") for body in shapes_taken()], ref_template="#/components/schemas/{model}"
        )
        components = document.setdefault("components", {}).setdefault("schemas", {})
        for name, shape in shapes["$defs"].items():
            components.setdefault(name, shape)
        _describe_problems(document)
        _describe_parameters(document)
        _describe_keys(document)
        _describe_access(document)
        _describe_replicas(document)
        app.openapi_schema = document
    return app.openapi_schema


def _describe_problems(document: dict[str, Any]) -> None:
    problem = {
        "description": "A problem: the error, the object it concerns, and how to fix it.",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"]["default"] = problem
            operation["responses"].pop("422", None)


def _describe_parameters(document: dict[str, Any]) -> None:
    """Remove null from the parameters: a URL cannot express it, and a client would send the text "null"."""
    operations = (operation for path in document["paths"].values() for operation in path.values())
    for parameter in (parameter for operation in operations for parameter in operation.get("parameters", ())):
        schema = parameter["schema"]
        kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
        parameter["schema"] = (
            {"anyOf": kinds, **schema} if len(kinds) > 1 else {**schema, **(kinds[0] if kinds else {})}
        )


def _describe_access(document: dict[str, Any]) -> None:
    """Say that every route but the public ones takes a key; `x-role` of each route names the roles that it serves."""
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer"},
        "outcomeToken": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
    }
    for path in document["paths"].values():
        for operation in path.values():
            schemes = ("key", "outcomeToken") if operation.get(TOKEN_MARK) else ("key",)
            operation["security"] = [] if operation["x-role"] == ["public"] else [{name: []} for name in schemes]


def _describe_replicas(document: dict[str, Any]) -> None:
    """Add the header of read replicas to every route that one may answer."""
    for path in document["paths"].values():
        for operation in path.values():
            if operation.get(LAG_MARK):
                header = {"description": SAYS, "schema": {"type": "string"}}
                operation["responses"]["200"]["headers"] = {READ_HEADER: header}
                asked = {"name": READ_HEADER, "in": "header", "description": ASKS, "required": False}
                parameter = asked | {"schema": {"type": "string"}}
                operation["parameters"] = [*operation.get("parameters", ()), parameter]


def _describe_keys(document: dict[str, Any]) -> None:
    """Add the key header to every write.

    A trigger without a key has its own error (400), so its route declares the key as optional.
    """
    schema = {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT}
    for name, path in document["paths"].items():
        for method in path.keys() & {write.lower() for write in WRITES}:
            others = [one for one in path[method].get("parameters", ()) if one["name"] != HEADER]
            described = {"name": HEADER, "in": "header", "description": KEY_SAYS, "schema": schema}
            path[method]["parameters"] = [*others, described | {"required": name.endswith(("/trigger", "/run"))}]
