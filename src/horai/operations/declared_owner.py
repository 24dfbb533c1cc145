"""The application that declares jobs, queues and workflows, and the result of a declaration."""

from dataclasses import dataclass

from horai.core.errors import Invalid

NAME_LIMIT = 128
QUEUE_WORD = "queue "
"""Comes before the names of queues, to tell them from jobs: the name of a job has no space."""


@dataclass(frozen=True, slots=True)
class DeclaredChanges:
    """The result for an application's jobs and workflows, by name, and for its queues as `queue mail`.

    Jobs and queues `removed` from the code still exist, unchanged.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def removed_queues(self) -> tuple[str, ...]:
        """Return the removed queues."""
        return tuple(name for name in self.removed if name.startswith(QUEUE_WORD))

    @property
    def removed_jobs(self) -> tuple[str, ...]:
        """Return the removed jobs and workflows."""
        return tuple(name for name in self.removed if not name.startswith(QUEUE_WORD))

    def __add__(self, more: "DeclaredChanges") -> "DeclaredChanges":
        """Return both results as one."""
        return DeclaredChanges(
            self.created + more.created,
            self.changed + more.changed,
            self.unchanged + more.unchanged,
            self.removed + more.removed,
        )


@dataclass(frozen=True, slots=True)
class Owner:
    """The application that declares jobs. An application without a name owns none of them.

    `formerly` are its previous names: it takes over the jobs that it declared under them.
    """

    name: str | None
    formerly: frozenset[str] = frozenset()

    @property
    def mark(self) -> dict[str, str]:
        """Return the field of a stored document that names the owner."""
        return {} if self.name is None else {"declaredBy": self.name}

    def require_valid_name(self) -> None:
        """Raise `Invalid` if the application has a name that cannot be stored or shown."""
        if self.name is not None and (not 0 < len(self.name) <= NAME_LIMIT or not self.name.isprintable()):
            raise Invalid.field("application", f"its name is not 1 to {NAME_LIMIT} printable characters")

    def may_declare(self, owner: str | None) -> bool:
        """Return whether this application may declare an object that belongs to `owner`."""
        return owner is None or owner == self.name or owner in self.formerly

    def way_out(self, owner: str, kind: str = "jobs") -> str:
        """Return the hint for an application that declares an object of `owner`."""
        name = repr(owner) if self.name is None else f"{self.name!r}, formerly={owner!r}"
        return (
            f"If this is the same application, write Horai({name}). Otherwise give one of the two {kind} another name."
        )


def owner_of(app: str | Owner) -> Owner:
    """Return the owner of this name; an `Owner` is returned as it is."""
    return Owner(app) if isinstance(app, str) else app
