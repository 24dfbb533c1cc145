"""Responses of the governor, as each caller may see them."""

from typing import Any

from horai.api.authentication import Caller
from horai.api.sentence_json import sentence_fields
from horai.core.controls import GovernorMode
from horai.features.governor import service
from horai.features.governor.phrases import GovernorWords
from horai.features.governor.rules import RULES, controls_of, modes_in_force
from horai.features.governor.store import Governor, TenantHold
from horai.features.governor.wire import GovernorOut, ManualHoldOut, ModeOut
from horai.operations.scope import PlatformScope
from horai.text.phrase import Phrase
from horai.wire.encode import Encoded
from horai.wire.health import Reason


async def encode_governor(scope: PlatformScope, caller: Caller, governor: Governor) -> Encoded:
    """Return the governor as the caller may see it: with the holds of the platform and of the caller's tenant.

    Only the platform sees who holds all tenants, and why.
    """
    holds = [] if caller.tenant_id is None else await service.read_tenant_holds(scope, caller.tenant_id)
    thresholds, state = governor.thresholds, governor.state
    of_platform = [*state.freezes.items(), *([("dispatch", state.pause)] if state.pause is not None else [])]
    shown = [
        ManualHoldOut.encode(
            hold,
            what=what,
            scope="platform",
            since=hold.at,
            actor=hold.actor if caller.is_platform else None,
            note=hold.note if caller.is_platform else None,
        )
        for what, hold in of_platform
    ]
    shown += [_encode_tenant_hold(hold) for hold in holds]
    actions = controls_of(state, thresholds).actions()
    return GovernorOut.encode(
        modes=[mode.value for mode in modes_in_force(state, thresholds)],
        dry_run=thresholds.is_dry_run,
        rules=[_encode_mode(mode, governor, caller) for mode in RULES],
        holds=shown,
        actions=[_encode_reason(action) for action in actions],
    )


def _encode_tenant_hold(hold: TenantHold) -> Encoded:
    return ManualHoldOut.encode(hold, what=hold.kind, scope="tenant", since=hold.created_at)


def _encode_mode(mode: GovernorMode, governor: Governor, caller: Caller) -> Encoded:
    state, track = governor.state, governor.state.track(mode)
    override = state.overrides.get(mode)
    cause: dict[str, Any] = {}
    if override is not None:
        cause = {"code": "BY_HAND", "note": override.note}
    elif track.cause is not None and track.level:
        cause = {"code": track.cause.code, "value": track.cause.value, "limit": track.cause.limit}
    return ModeOut.encode(
        mode=mode.value,
        level=state.level_in_force(mode, is_dry_run=governor.thresholds.is_dry_run),
        would_be_level=track.level,
        since=track.since if override is None else override.at,
        cause=encode_cause(cause, caller),
        override=None if override is None else ("ON" if override.is_on else "OFF"),
        override_expires_at=None if override is None else override.expires_at,
    )


def encode_cause(cause: Any, caller: Caller) -> Encoded | None:
    """Return the sentence of a cause. The note of an operator is part of it for the platform, and no tenant sees it."""
    match cause:
        case {"code": "BY_HAND", "note": str(note)} if caller.is_platform:
            return _encode_reason(GovernorWords.BY_HAND_NOTED(note=note))
        case {"code": "BY_HAND"}:
            return _encode_reason(GovernorWords.BY_HAND())
        case {"code": str(code), "value": value, "limit": limit}:
            return _encode_reason(GovernorWords[code](value=f"{value:g}", limit=f"{limit:g}"))
        case _:
            return None


def _encode_reason(phrase: Phrase) -> Encoded:
    """Return a sentence with its translation."""
    return Reason.encode(**sentence_fields("text", phrase))
