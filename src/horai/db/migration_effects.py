"""The effects of a statement of a migration: the tables that it locks, how, and the work that it does meanwhile.

The judgement is by the text alone. It errs on the safe side: a default that may be volatile counts as volatile, a change of
a type as a rewrite, and a block of code that runs built statements as not known.
"""

from collections.abc import Iterator, Sequence

from horai.db.migration_alter import effects_of_alter
from horai.db.migration_locks import LockMode, OnlineRule, TableEffect, Work, blocks, catalog, shares
from horai.db.migration_words import WordReader, names_after
from horai.db.sql_script import ScriptStatement, split_script

_MADE_WITHOUT_LOCK = frozenset(
    """function procedure view type sequence schema extension aggregate domain role collation operator cast language
    default database user system statistics publication""".split()  # noqa: SIM905
)
_TEMPORARY = ("or", "replace", "temporary", "temp", "unlogged", "global", "local", "recursive")
_HARMLESS = frozenset({"grant", "revoke", "comment", "set", "reset", "select", "insert", "notify", "begin", "commit"})
_BLOCK_STARTS = frozenset({"begin", "then", "else", "loop"})
_CHANGES = frozenset({"alter", "create", "update", "delete", "merge", "drop", "truncate", "lock", "reindex", "cluster"})
_LOCKS = {mode.value.lower(): mode for mode in LockMode}


def effects_of(statement: ScriptStatement) -> list[TableEffect]:
    """Return the effects of a statement, one for each table that it locks; none if it locks no table."""
    if statement.words[:1] == ("do",):
        return _effects_of_block(statement)
    return _effects(statement.words)


def _effects(words: Sequence[str]) -> list[TableEffect]:
    reader = WordReader(words[1:])
    match words[0]:
        case "alter":
            return _altered(reader)
        case "create":
            return _created(reader)
        case "drop":
            return _dropped(reader)
        case "update" | "delete" | "merge" | "with":
            return _changed_rows(words)
        case "truncate":
            reader.take_any("table", "only")
            return [catalog(WordReader(part).name()) for part in reader.parts()]
        case "lock":
            return _locked(reader)
        case "reindex" | "cluster" | "vacuum" | "refresh" | "analyze":
            return _maintained(words[0], reader)
        case word if word in _HARMLESS:
            return []
        case _:
            return [TableEffect(work=Work.UNKNOWN, rule=OnlineRule.KNOWN_BLOCK)]


def _altered(reader: WordReader) -> list[TableEffect]:
    if reader.take("table"):
        return effects_of_alter(reader)
    if reader.take("policy"):
        return [catalog(name) for name in names_after(reader.rest, "on")[:1]]
    if reader.take("index"):
        reader.take("if", "exists")
        return [catalog(reader.name())]
    return _known(reader.rest[0] in _MADE_WITHOUT_LOCK)


def _created(reader: WordReader) -> list[TableEffect]:
    reader.take_any(*_TEMPORARY)
    if reader.take("table"):
        return _made_table(reader)
    reader.take_any("unique")
    if reader.take("index"):
        return [_made_index(reader)]
    if reader.take("trigger") or reader.take("constraint", "trigger"):
        return [catalog(name, LockMode.SHARE_ROW_EXCLUSIVE) for name in names_after(reader.rest, "on")[:1]]
    if reader.take("policy"):
        return [catalog(name) for name in names_after(reader.rest, "on")[:1]]
    return _known(reader.rest[0] in _MADE_WITHOUT_LOCK or reader.rest[0] == "materialized")


def _made_table(reader: WordReader) -> list[TableEffect]:
    """Return the locks of a new table: of its parent if it is a partition, and of the tables that its foreign keys name."""
    reader.take("if", "not", "exists")
    own = reader.name()
    locked = [catalog(reader.name())] if reader.take("partition", "of") else []
    named = dict.fromkeys(names_after(reader.rest, "references"))
    return locked + [catalog(name, LockMode.SHARE_ROW_EXCLUSIVE) for name in named if name != own]


def _made_index(reader: WordReader) -> TableEffect:
    is_concurrent = reader.take("concurrently")
    reader.skip_to("on")
    is_alone = reader.take("only")
    table = reader.name()
    if is_alone:
        return catalog(table, LockMode.SHARE)
    if is_concurrent:
        return shares(table, Work.INDEX)
    return blocks(table, Work.INDEX, OnlineRule.CONCURRENT_INDEX, LockMode.SHARE)


def _dropped(reader: WordReader) -> list[TableEffect]:
    for kind in ("index", "table", "trigger", "policy"):
        if not reader.take(kind):
            continue
        is_concurrent = reader.take("concurrently")
        reader.take("if", "exists")
        if kind in {"trigger", "policy"}:
            return [catalog(name) for name in names_after(reader.rest, "on")[:1]]
        lock = LockMode.SHARE_UPDATE_EXCLUSIVE if is_concurrent else LockMode.ACCESS_EXCLUSIVE
        return [catalog(WordReader(part).name(), lock) for part in reader.parts()]
    return _known(reader.rest[0] in _MADE_WITHOUT_LOCK or reader.rest[0] in {"materialized", "owned"})


def _changed_rows(words: Sequence[str]) -> list[TableEffect]:
    """Rows stay locked until the end of the transaction: claims of these rows skip them, settlements wait."""
    found: dict[str, None] = {}
    before = ""
    for place, word in enumerate(words):
        reader = WordReader(words[place:])
        is_change = reader.take("update") or reader.take("delete", "from") or reader.take("merge", "into")
        if is_change and before not in {"for", "do", "key", "on"} and word in {"update", "delete", "merge"}:
            reader.take("only")
            found[reader.name()] = None
        before = word
    return [blocks(table, Work.ROWS, OnlineRule.ROWS_IN_PORTIONS, LockMode.ROW_EXCLUSIVE) for table in found]


def _locked(reader: WordReader) -> list[TableEffect]:
    reader.take_any("table", "only")
    names = [WordReader(part).name() for part in reader.parts()]
    mode = LockMode.ACCESS_EXCLUSIVE
    if reader.skip_to("in"):
        named = " ".join(reader.rest[: reader.rest.index("mode")]) if "mode" in reader.rest else ""
        mode = _LOCKS.get(named, LockMode.ROW_EXCLUSIVE)
    return [catalog(name, mode) for name in names]


def _maintained(verb: str, reader: WordReader) -> list[TableEffect]:
    words = reader.rest
    if verb == "analyze" or (verb == "vacuum" and "full" not in words):
        return [shares(words[-1], Work.SCAN)]
    if "concurrently" in words:
        return [shares(words[-1], Work.INDEX)]
    return [blocks(words[-1], Work.REWRITE, OnlineRule.NO_REWRITE)]


def _known(is_known: bool) -> list[TableEffect]:
    return [] if is_known else [TableEffect(work=Work.UNKNOWN, rule=OnlineRule.KNOWN_BLOCK)]


def _effects_of_block(statement: ScriptStatement) -> list[TableEffect]:
    """Return the effects of the statements inside a `do` block; one that builds statements is not known.

    A comment `-- online: reason` above the block takes the place of a judgement.
    """
    if statement.note("online") is not None:
        return []
    body = next((word for word in statement.words if word.startswith(("$", "'"))), "")
    inside = [words for part in split_script(_unquoted(body)) for words in _statements_in(part.words)]
    found = [effect for words in inside for effect in _effects(words)]
    if any("execute" in part.words for part in split_script(_unquoted(body))):
        found.append(TableEffect(work=Work.UNKNOWN, rule=OnlineRule.KNOWN_BLOCK))
    return found


def _unquoted(body: str) -> str:
    if body.startswith("$"):
        tag = body[: body.index("$", 1) + 1]
        return body[len(tag) : -len(tag)]
    return body[1:-1].replace("''", "'")


def _statements_in(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the statement that follows the words of control, such as `begin` and `then`."""
    starts = [0, *(place + 1 for place, word in enumerate(words) if word in _BLOCK_STARTS)]
    for place in starts:
        if place < len(words) and (words[place] in _CHANGES or words[place] == "with"):
            yield tuple(words[place:])
