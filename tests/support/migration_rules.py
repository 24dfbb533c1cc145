"""The rules of docs/guides/upgrading.md for the files of migrations, by their text alone.

Every table of an earlier file counts as one of ten million rows, except those that cannot grow with the work.
"""

from collections.abc import Iterator, Sequence

from horai.db.migration_file import Migration
from horai.db.migration_locks import PAGE, OnlineRule
from horai.db.migration_plan import KnownChecks, TableSize, judge
from horai.db.migration_words import WordReader
from horai.db.releases import minor_of, minor_version
from horai.db.sql_script import ScriptStatement

LIMITED = frozenset(
    f"horai.{name}"
    for name in """tenant signing_secret node shard_lease queue lane governor tenant_hold cluster client data_key outbox_cursor
    audit_clock access_state access_group tenant_quota sink calendar alert_channel alert_rule alert_silence migration""".split()  # noqa: SIM905
)
"""Tables whose rows operators or nodes add one by one."""
LARGE = TableSize(10_000_000, 10 * 2**30)
_KINDS = ("table", "view", "function")


def broken_rules(files: Sequence[Migration], since: int) -> list[str]:
    """Return a message for each rule that a file with a number above `since` breaks."""
    made: set[str] = set()
    checks = KnownChecks()
    found: list[str] = []
    for file in files:
        if file.number > since:
            sizes = dict.fromkeys(made - LIMITED, LARGE)
            steps = judge([file], sizes, checks).steps
            broken = [(step.statement, step.rule) for step in steps if step.rule is not None]
            broken += list(_of_the_file(file))
            found += [
                f"{file.label}: `{text}` breaks the rule {rule.id} of {PAGE}. {rule}"
                for text, rule in dict.fromkeys(broken)
            ]
        made |= {name for kind, name in _names(file, "create") if kind == "table"}
    return found


def _of_the_file(file: Migration) -> Iterator[tuple[str, OnlineRule]]:
    made = {name for _, name in _names(file, "create")}
    for statement in file.statements():
        if file.in_transaction and "concurrently" in statement.words:
            yield statement.text, OnlineRule.OWN_FILE
        if not file.in_transaction and not _is_repeatable(statement):
            yield statement.text, OnlineRule.REPEATABLE
        if _takes_away(statement, made) and not _is_unused(statement, file):
            yield statement.text, OnlineRule.KEPT_FOR_ONE_MINOR


def _names(file: Migration, verb: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each object that the file creates or drops."""
    for statement in file.statements():
        reader = WordReader(statement.words)
        if not reader.take(verb):
            continue
        reader.take_any("or", "replace", "unlogged", "temporary")
        for kind in _KINDS:
            if reader.take(kind):
                reader.take("if", "not", "exists")
                reader.take("if", "exists")
                yield kind, reader.name()


def _is_repeatable(statement: ScriptStatement) -> bool:
    words = " ".join(statement.words)
    match statement.words[0]:
        case "create":
            return "if not exists" in words or words.startswith("create or replace")
        case "drop":
            return "if exists" in words
        case "alter":
            return "add constraint" not in words and ("add" not in statement.words or "if not exists" in words)
        case "insert":
            return "on conflict" in words
        case _:
            return True


def _takes_away(statement: ScriptStatement, made: set[str]) -> bool:
    """Return whether the statement drops or renames what the file does not create again."""
    reader = WordReader(statement.words)
    if reader.take("drop"):
        is_kind = any(reader.take(kind) for kind in _KINDS)
        reader.take("if", "exists")
        return is_kind and reader.name() not in made
    if not reader.take("alter", "table"):
        return False
    reader.take_any("only")
    reader.name()
    return any(
        part[0] == "rename" or (part[0] == "drop" and part[1] not in {"constraint", "default"})
        for part in reader.parts()
    )


def _is_unused(statement: ScriptStatement, file: Migration) -> bool:
    told = minor_version(statement.note("unused since") or "")
    own = minor_version(minor_of(file.number))
    return told is not None and own is not None and told < own
