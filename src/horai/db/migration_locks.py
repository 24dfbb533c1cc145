"""The words of a migration plan: locks, work, and the rules for migrations that run while nodes work.

A statement is online if no other session waits for it longer than a second on a table of ten million rows: it changes
only the catalog, or it reads the rows under a lock that lets claims, puts and settlements through.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

PAGE = "docs/guides/upgrading.md"


class LockMode(StrEnum):
    """The strongest lock that a statement takes on a table, as PostgreSQL names it."""

    NONE = "none"
    ROW_EXCLUSIVE = "ROW EXCLUSIVE"
    SHARE_UPDATE_EXCLUSIVE = "SHARE UPDATE EXCLUSIVE"
    SHARE = "SHARE"
    SHARE_ROW_EXCLUSIVE = "SHARE ROW EXCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    ACCESS_EXCLUSIVE = "ACCESS EXCLUSIVE"

    @property
    def blocks_writes(self) -> bool:
        """Return whether inserts, updates and deletes of other sessions wait for the lock."""
        return self not in {LockMode.NONE, LockMode.ROW_EXCLUSIVE, LockMode.SHARE_UPDATE_EXCLUSIVE}


class Work(StrEnum):
    """The work that a statement does while it holds its lock."""

    CATALOG = "catalog only"
    SCAN = "reads every row"
    INDEX = "builds an index"
    ROWS = "changes rows"
    REWRITE = "rewrites the table"
    UNKNOWN = "not known"

    @property
    def is_long(self) -> bool:
        """Return whether the work grows with the table."""
        return self is not Work.CATALOG


class OnlineRule(StrEnum):
    """The rules of docs/guides/upgrading.md. A value says what to do instead."""

    CONCURRENT_INDEX = "Build the index with `create index concurrently if not exists`, in a file that begins with `-- no-transaction`."
    CONSTANT_DEFAULT = "Add the column without a default or with a constant one, and fill it in portions."
    SAME_TYPE = "Add a column of the new type and fill it in portions; drop the old one a minor version later."
    VALIDATED_NOT_NULL = (
        "Add `check (column is not null) not valid`, validate it in a later file, and set not null in the one after it."
    )
    VALIDATED_CONSTRAINT = "Add the constraint `not valid`, and validate it in a later file."
    INDEXED_CONSTRAINT = "Build a unique index concurrently, then add the constraint `using index`."
    ROWS_IN_PORTIONS = (
        "Change the rows in portions: a `do` block that commits, in a file that begins with `-- no-transaction`."
    )
    NO_REWRITE = "Make a new table, fill it in portions and switch to it; no statement may write all rows at once."
    KNOWN_BLOCK = "Say above the statement why it is online: `-- online: reason`."
    SHORT_TRANSACTION = "Move the statement into a later file: the transaction still holds the lock of an earlier one."
    OWN_FILE = "Begin the file with `-- no-transaction`: PostgreSQL runs the statement outside a transaction only."
    REPEATABLE = "Write `if not exists` or `if exists`: after a crash, the file runs again from its first statement."
    KEPT_FOR_ONE_MINOR = (
        "Nodes of the last minor version still use it. Drop or rename it one minor version after its last use,"
        " and say so above the statement: `-- unused since: 0.2`."
    )

    @property
    def id(self) -> str:
        """Return the name of the rule on the page."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class TableEffect:
    """The effect of a statement on one table; the table is empty if there is none, or it is not known."""

    table: str = ""
    lock: LockMode = LockMode.NONE
    work: Work = Work.CATALOG
    rule: OnlineRule | None = None
    """The rule that the statement breaks if the table existed before and may be large."""
    not_null: str = ""
    """The column that `set not null` names: with a validated check on it, PostgreSQL reads no row."""

    @property
    def is_online(self) -> bool:
        """Return whether no write of another session waits while rows are read or written."""
        if self.work in {Work.ROWS, Work.REWRITE, Work.UNKNOWN}:
            return False
        return not (self.work.is_long and self.lock.blocks_writes)

    def proven(self) -> "TableEffect":
        """Return the effect of `set not null` on a column that a validated check holds not null."""
        return replace(self, work=Work.CATALOG, rule=None)


def catalog(table: str, lock: LockMode = LockMode.ACCESS_EXCLUSIVE) -> TableEffect:
    """Return the effect of a statement that changes only the catalog."""
    return TableEffect(table, lock)


def shares(table: str, work: Work) -> TableEffect:
    """Return the effect of a long statement that lets writes through."""
    return TableEffect(table, LockMode.SHARE_UPDATE_EXCLUSIVE, work)


def blocks(table: str, work: Work, rule: OnlineRule, lock: LockMode = LockMode.ACCESS_EXCLUSIVE) -> TableEffect:
    """Return the effect of a long statement that writes wait for."""
    return TableEffect(table, lock, work, rule)
