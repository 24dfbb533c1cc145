"""Branch: the return value of a workflow node that chooses which of the nodes after it run."""

from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

R_co = TypeVar("R_co", covariant=True)


class NamedJob(Protocol):
    """A job, or anything else that has the name of a node."""

    @property
    def name(self) -> str:
        """The name of the node."""
        ...


class Branch(Generic[R_co]):
    """The nodes directly after this one that run, and the result of this node. `branch` makes one."""

    __slots__ = ("nodes", "result")

    def __init__(self, nodes: tuple[str, ...], result: R_co) -> None:
        self.nodes = nodes
        self.result = result

    def __repr__(self) -> str:
        return f"branch({', '.join(map(repr, self.nodes))}, result={self.result!r})"


def branch(*nodes: NamedJob | str, result: Any = None) -> Branch[Any]:
    """Return it from the function of a node: of the nodes directly after it, only these run, the others are skipped.

    `result` is the result of the function. Without names, all nodes directly after it are skipped. If a name is not that
    of a node directly after it, the node is DEAD with the code BRANCH_UNKNOWN.
    """
    return Branch(tuple(node if isinstance(node, str) else node.name for node in nodes), result)


def is_branch_type(annotation: object) -> bool:
    """Return whether a return annotation is `Branch`, or a union with it: its results have no type of their own."""
    kinds = (annotation, get_origin(annotation), *get_args(annotation))
    return any(kind is Branch or get_origin(kind) is Branch for kind in kinds)
