"""Definitions as YAML: documents in and out, to the letter, with the line of each field.

Plain scalars mean what they mean in JSON: `yes`, `2026-01-01` and `1:30` are texts, and a number stays as it is written.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The stubs of yaml are partial.

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from horai.cli.errors import CommandFailed

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"": "null", "~": "null", "null": "null", "true": "true", "false": "false"}
MOST_NODES = 100_000
"""Values of a file. An alias counts as all that it stands for."""
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A document as JSON text, and the line of each of its values by path, such as `retry.base`."""

    text: str
    lines: dict[str, int]

    def line_of(self, field: str) -> int:
        """Return the line of a field, or of the closest value around it."""
        path = field
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return self.lines[path]


class _NumberText(str):
    """A number as it is written."""

    __slots__ = ()


class _ExactDumper(yaml.SafeDumper):
    """A dumper that writes numbers to the letter and quotes texts that YAML 1.1 or JSON reads as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_number(dumper: _ExactDumper, number: _NumberText) -> yaml.ScalarNode:
    return dumper.represent_scalar(dumper.resolve(yaml.ScalarNode, str(number), (True, False)), str(number))


def _represent_text(dumper: _ExactDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ExactDumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(f"^(?:{_NUMBER.pattern})$"), list("-0123456789")
)
_ExactDumper.add_representer(_NumberText, _represent_number)
_ExactDumper.add_representer(str, _represent_text)


def dump(texts: Iterable[str]) -> str:
    """Return JSON texts as a stream of YAML documents."""
    values = [json.loads(text, parse_int=_NumberText, parse_float=_NumberText) for text in texts]
    return yaml.dump_all(
        values, Dumper=_ExactDumper, sort_keys=False, allow_unicode=True, width=120, explicit_start=True
    )


def load(text: str, name: str) -> list[YamlDocument]:
    """Return the documents of a YAML text. Raises `CommandFailed` with the line of the first fault; `name` is that of the file."""
    try:
        roots = [root for root in yaml.compose_all(text, Loader=yaml.SafeLoader) if root is not None]
        return [_document(root) for root in roots if not _is_empty(root)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CommandFailed(f"{name}:{line}: {error.problem or 'is not YAML'}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise CommandFailed(f"{name} is not YAML: {type(error).__name__}.") from error
    except _YamlFault as fault:
        raise CommandFailed(f"{name}:{fault.line}: {fault.reason}.") from fault


class _YamlFault(Exception):
    def __init__(self, node: yaml.Node, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = _line(node), reason


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _is_empty(root: yaml.Node) -> bool:
    return isinstance(root, yaml.ScalarNode) and root.value == ""


def _document(root: yaml.Node) -> YamlDocument:
    if not isinstance(root, yaml.MappingNode):
        raise _YamlFault(root, "a document is a mapping with kind and name")
    lines: dict[str, int] = {"": _line(root)}
    parts: list[str] = []
    for part in _parts(root, (), lines):
        parts.append(part)
        if len(parts) > MOST_NODES * 3:
            raise _YamlFault(root, "the document has too many values")
    return YamlDocument("".join(parts), lines)


def _parts(node: yaml.Node, path: tuple[str, ...], lines: dict[str, int]) -> Iterator[str]:
    """Yield the parts of the JSON text of a value."""
    if len(path) > DEEPEST:
        raise _YamlFault(node, f"values are nested deeper than {DEEPEST} levels")
    if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.endswith(":binary"):
        raise _YamlFault(node, f"the tag {node.tag} has no meaning here")
    lines.setdefault(".".join(path), _line(node))
    if isinstance(node, yaml.MappingNode):
        yield from _members(node, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield "," if number else "["
            yield from _parts(item, (*path, str(number)), lines)
        yield "]" if node.value else "[]"
    else:
        yield _scalar(node)


def _members(node: yaml.MappingNode, path: tuple[str, ...], lines: dict[str, int]) -> Iterator[str]:
    seen: set[str] = set()
    for number, (key, value) in enumerate(node.value):
        if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
            raise _YamlFault(key, "the name of a field is a text; merge keys are not read")
        if key.value in seen:
            raise _YamlFault(key, f"the field {key.value} occurs twice")
        seen.add(key.value)
        lines[".".join((*path, key.value))] = _line(key)
        yield ("," if number else "{") + json.dumps(key.value, ensure_ascii=False) + ":"
        yield from _parts(value, (*path, key.value), lines)
    yield "}" if node.value else "{}"


def _scalar(node: yaml.Node) -> str:
    text = str(node.value)
    is_plain = isinstance(node, yaml.ScalarNode) and node.style is None
    if is_plain and text in _WORDS:
        return _WORDS[text]
    if is_plain and _NUMBER.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)
