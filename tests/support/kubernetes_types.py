"""The types of Kubernetes, read from the source of lightkube-models, and a check of manifests against them.

The check knows the names, types and required fields of every object. It does not know the values that the API server
allows, such as those of `imagePullPolicy`.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

MODULES = {
    "v1": "core_v1",
    "apps/v1": "apps_v1",
    "batch/v1": "batch_v1",
    "autoscaling/v2": "autoscaling_v2",
    "policy/v1": "policy_v1",
    "networking.k8s.io/v1": "networking_v1",
}
SCALARS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "Quantity": (str, int),
    "IntOrString": (str, int),
    "datetime": (str,),
}


class Field(NamedTuple):
    """A field of an object: its type as it is written, and whether it must be given."""

    type: ast.expr
    is_required: bool


@lru_cache
def _module(name: str) -> dict[str, dict[str, Field]]:
    """Return the classes of a module, with their fields by their names in JSON."""
    spec = find_spec("lightkube.models")
    assert spec is not None
    assert spec.submodule_search_locations
    tree = ast.parse((Path(spec.submodule_search_locations[0]) / f"{name}.py").read_text())
    found: dict[str, dict[str, Field]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = dict(_field(each) for each in node.body if isinstance(each, ast.AnnAssign))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = {"": Field(node.value, False)}
    return found


def _field(node: ast.AnnAssign) -> tuple[str, Field]:
    assert isinstance(node.target, ast.Name)
    assert isinstance(node.annotation, ast.Constant)
    name, default = node.target.id, node.value
    if isinstance(default, ast.Call):
        told = {each.arg: each.value for each in default.keywords}
        metadata = told.get("metadata")
        if isinstance(metadata, ast.Dict):
            (name,) = (each.value for each in metadata.values if isinstance(each, ast.Constant))
        default = told.get("default")
    return str(name), Field(ast.parse(str(node.annotation.value), mode="eval").body, default is None)


def faults(manifest: Any) -> list[str]:
    """Return the faults of a manifest: unknown and missing fields, and values of another type."""
    module = MODULES.get(manifest.get("apiVersion"))
    if module is None or manifest.get("kind") not in _module(module):
        return [f"{manifest.get('apiVersion')} {manifest.get('kind')} is not known"]
    return list(_of_class(module, manifest["kind"], manifest, manifest["kind"]))


def _of_class(module: str, name: str, value: Any, path: str) -> Iterator[str]:
    fields = _module(module)[name]
    if "" in fields:
        yield from _of_type(module, fields[""].type, value, path)
        return
    if not isinstance(value, dict):
        yield f"{path} is no object"
        return
    yield from (f"{path}.{key} is unknown" for key in value if key not in fields)
    yield from (f"{path}.{key} is missing" for key, each in fields.items() if each.is_required and key not in value)
    for key in fields.keys() & value.keys():
        yield from _of_type(module, fields[key].type, value[key], f"{path}.{key}")


def _of_type(module: str, kind: ast.expr, value: Any, path: str) -> Iterator[str]:
    match kind:
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            yield from _of_type(module, inner, value, path)
        case ast.Subscript(value=ast.Name(id="List"), slice=inner):
            if not isinstance(value, list):
                yield f"{path} is no list"
                return
            for number, each in enumerate(value):
                yield from _of_type(module, inner, each, f"{path}[{number}]")
        case ast.Attribute(value=ast.Name(id=other), attr=name):
            yield from _of_name(other, name, value, path)
        case ast.Name(id=name):
            yield from _of_name(module, name, value, path)
        case _:  # a mapping of any values
            if not isinstance(value, dict):
                yield f"{path} is no object"


def _of_name(module: str, name: str, value: Any, path: str) -> Iterator[str]:
    if name in SCALARS:
        is_flag = isinstance(value, bool)
        if not isinstance(value, SCALARS[name]) or is_flag != (name == "bool"):
            yield f"{path} is {value!r}, not {name}"
    elif name in {"dict", "Dict"}:
        if not isinstance(value, dict):
            yield f"{path} is no object"
    elif name != "Any":
        yield from _of_class(module, name, value, path)
