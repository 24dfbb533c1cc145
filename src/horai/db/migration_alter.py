"""The effects of `alter table`, action by action."""

from collections.abc import Sequence
from itertools import pairwise

from horai.db.migration_locks import LockMode, OnlineRule, TableEffect, Work, blocks, catalog, shares
from horai.db.migration_words import WordReader, follows, names_after, outer, with_depth

_SERIAL = frozenset({"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"})
_AFTER_DEFAULT = frozenset({"not", "null", "constraint", "check", "unique", "primary", "references", "generated"})
_NOT_VOLATILE = frozenset(
    """now transaction_timestamp statement_timestamp jsonb_build_object json_build_object jsonb_build_array json_build_array
    lower upper coalesce nullif current_setting make_interval array numeric decimal varchar char character varying bit
    timestamp timestamptz time interval""".split()  # noqa: SIM905
)
"""Names before a parenthesis in a default that PostgreSQL evaluates once for all rows; any other may be volatile."""
_CONSTRAINTS = frozenset({"constraint", "check", "foreign", "unique", "primary", "exclude"})
_REWRITES = frozenset({"logged", "unlogged", "tablespace", "access"})


def effects_of_alter(reader: WordReader) -> list[TableEffect]:
    """Return the effects of the words after `alter table`."""
    reader.take("if", "exists")
    reader.take("only")
    table = reader.name()
    reader.take("*")
    return [effect for action in reader.parts() for effect in _action(table, action)]


def _action(table: str, words: Sequence[str]) -> list[TableEffect]:
    reader = WordReader(words)
    match words[0]:
        case "add":
            reader.take("add")
            return _constraint(table, reader) if reader.rest[0] in _CONSTRAINTS else _column(table, reader)
        case "alter":
            return [_change_of_column(table, reader)]
        case "validate":
            return [shares(table, Work.SCAN)]
        case "attach":
            reader.skip_to("partition")
            child = reader.name()
            locked = catalog(table, LockMode.SHARE_UPDATE_EXCLUSIVE)
            return [locked, blocks(child, Work.SCAN, OnlineRule.VALIDATED_CONSTRAINT)]
        case "detach" if "concurrently" in words:
            return [catalog(table, LockMode.SHARE_UPDATE_EXCLUSIVE)]
        case "enable" | "disable" if "trigger" in words:
            return [catalog(table, LockMode.SHARE_ROW_EXCLUSIVE)]
        case "set" if words[1] in _REWRITES:
            return [blocks(table, Work.REWRITE, OnlineRule.NO_REWRITE)]
        case "set" | "reset" | "cluster":
            return [catalog(table, LockMode.SHARE_UPDATE_EXCLUSIVE)]
        case _:  # drop, rename, owner, row level security, inherit, replica identity
            return [catalog(table)]


def _constraint(table: str, reader: WordReader) -> list[TableEffect]:
    if reader.take("constraint"):
        reader.name()
    words = reader.rest
    is_valid = not follows(outer(words), "not", "valid")
    work = Work.SCAN if is_valid else Work.CATALOG
    rule = OnlineRule.VALIDATED_CONSTRAINT if is_valid else None
    match words[0]:
        case "foreign":
            others = [catalog(name, LockMode.SHARE_ROW_EXCLUSIVE) for name in names_after(words, "references")]
            return [TableEffect(table, LockMode.SHARE_ROW_EXCLUSIVE, work, rule), *others]
        case "check" | "not":
            return [TableEffect(table, LockMode.ACCESS_EXCLUSIVE, work, rule)]
        case _ if follows(words, "using", "index"):
            return [catalog(table)]
        case _:
            return [blocks(table, Work.INDEX, OnlineRule.INDEXED_CONSTRAINT)]


def _column(table: str, reader: WordReader) -> list[TableEffect]:
    reader.take("column")
    reader.take("if", "not", "exists")
    reader.name()
    words = reader.rest
    shown = outer(words)
    default = _default_of(words)
    others = [catalog(name, LockMode.SHARE_ROW_EXCLUSIVE) for name in names_after(words, "references")]
    if _SERIAL & set(words[:1]) or _is_computed(shown) or _may_be_volatile(default):
        return [blocks(table, Work.REWRITE, OnlineRule.CONSTANT_DEFAULT), *others]
    if {"unique", "primary"} & set(shown):
        return [blocks(table, Work.INDEX, OnlineRule.INDEXED_CONSTRAINT), *others]
    if "check" in shown or (others and default):
        return [blocks(table, Work.SCAN, OnlineRule.VALIDATED_CONSTRAINT), *others]
    if follows(shown, "not", "null") and not default:
        return [blocks(table, Work.SCAN, OnlineRule.VALIDATED_NOT_NULL), *others]
    return [catalog(table), *others]


def _is_computed(words: Sequence[str]) -> bool:
    return "generated" in words and words[-1] != "virtual"


def _default_of(words: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    is_default = False
    for word, depth in with_depth(words):
        if depth == 0 and word == "default":
            is_default = True
        elif is_default and depth == 0 and word in _AFTER_DEFAULT and not (word == "null" and not found):
            break
        elif is_default:
            found.append(word)
    return tuple(found)


def _may_be_volatile(default: Sequence[str]) -> bool:
    calls = [before for before, word in pairwise(default) if word == "("]
    return any((name[0].isalpha() or name[0] in '_"') and name not in _NOT_VOLATILE for name in calls)


def _change_of_column(table: str, reader: WordReader) -> TableEffect:
    reader.take("alter")
    if reader.take("constraint"):
        return catalog(table)
    reader.take("column")
    column = reader.name()
    if reader.take("type") or reader.take("set", "data", "type"):
        return blocks(table, Work.REWRITE, OnlineRule.SAME_TYPE)
    if reader.take("set", "not", "null"):
        return TableEffect(table, LockMode.ACCESS_EXCLUSIVE, Work.SCAN, OnlineRule.VALIDATED_NOT_NULL, column)
    if reader.take("set", "statistics") or reader.take("set", "(") or reader.take("reset"):
        return catalog(table, LockMode.SHARE_UPDATE_EXCLUSIVE)
    return catalog(table)
