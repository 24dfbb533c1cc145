"""The API reference at /docs: a page made from the OpenAPI document, without scripts and external resources."""

from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

from horai.api.route import RoleRoute, needs

router = APIRouter(include_in_schema=False, route_class=RoleRoute)

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #ccc; } code, pre { font: 14px/1.4 ui-monospace, monospace; }
th, td { text-align: left; vertical-align: top; padding: 0.1rem 1rem 0.1rem 0; }
"""


@router.get("/docs")
@needs()
async def docs(request: Request) -> Response:
    """Show every operation with its parameters, body and responses."""
    return Response("\n".join(_page(request.app.openapi())), media_type="text/html")


@router.get("/docs.css")
@needs()
async def docs_style() -> Response:
    """Return the style sheet of the reference: the content security policy forbids inline styles."""
    return Response(STYLE, media_type="text/css")


def _page(document: dict[str, Any]) -> Iterator[str]:
    info = document["info"]
    title = escape(f"{info['title']} {info['version']} API")
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f'<link rel="stylesheet" href="/docs.css"></head><body><h1>{title}</h1>'
    yield '<p>Machine-readable: <a href="/openapi.json">/openapi.json</a>.</p>'
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield from _operation(method, path, operation)
    yield "<h2>Schemas</h2>"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _schema(name, schema)
    yield "</body></html>"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<section id="{name}"><h2>{method.upper()} <code>{escape(path)}</code></h2>'
    yield f"<p><code>{name}</code>: {escape(operation.get('description') or operation['summary'])}</p><table>"
    for parameter in operation.get("parameters", ()):
        needed = "required" if parameter.get("required") else "optional"
        kind = _kind(parameter["schema"])
        yield f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{parameter['in']}, {needed}</td><td>{kind}</td></tr>"
    for media in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<tr><td>body</td><td></td><td>{_kind(media['schema'])}</td></tr>"
    for status, response in operation["responses"].items():
        kinds = ", ".join(_kind(media["schema"]) for media in response.get("content", {}).values())
        yield f"<tr><td>{status}</td><td>{escape(response['description'])}</td><td>{kinds}</td></tr>"
    yield "</table></section>"


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f'<section id="schema-{escape(name)}"><h3>{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p><table>'
    for field, kind in schema.get("properties", {}).items():
        needed = "required" if field in schema.get("required", ()) else "optional"
        yield f"<tr><td><code>{escape(field)}</code></td><td>{needed}</td><td>{_kind(kind)}</td></tr>"
    yield "</table></section>"


def _kind(schema: dict[str, Any]) -> str:
    """Return the HTML of a type, with a link to the schema that it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#schema-{name}">{name}</a>'
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_kind(kind) for kind in kinds)
    if "enum" in schema:
        return escape(", ".join(map(str, schema["enum"])))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type", "any")))
