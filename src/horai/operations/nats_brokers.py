"""The NATS brokers of a server: which there are, and whether a job may be handed over to one."""

from collections.abc import Mapping
from importlib.util import find_spec

from horai.core.calls import NatsTarget, Target
from horai.core.errors import Invalid
from horai.core.jetstream import NATS_SCHEMES
from horai.operations.scope import Scope
from horai.text import Hint, Wrong


def nats_brokers(brokers: Mapping[str, str]) -> dict[str, str]:
    """Return the brokers that are NATS, with their URLs."""
    return {name: url for name, url in brokers.items() if url.startswith(NATS_SCHEMES)}


def has_nats() -> bool:
    """Return whether the package `nats` is installed, without importing it."""
    return find_spec("nats") is not None


def require_broker(scope: Scope, target: Target) -> None:
    """Raise `Invalid` for a subject of a broker that the operator does not allow, or that this server cannot use."""
    if not isinstance(target, NatsTarget):
        return
    if target.broker not in scope.nats_brokers:
        raise Invalid.field("target.broker", Wrong.NO_NATS_BROKER(), Hint.ALLOW_BROKER())
    if not has_nats():
        raise Invalid.field("target.type", Wrong.NATS_MISSING(), Hint.INSTALL_NATS())
