"""Operations on named secrets: create, replace, list and delete. A value is sealed before it is stored."""

from collections.abc import Sequence

from horai.core.audit import AuditVerb
from horai.core.errors import Conflict, Duplicate, Invalid, NotFound
from horai.core.job import SECRET_NAME
from horai.core.target_checks import is_header_value
from horai.db import secrets
from horai.db.pool import TenantWrite
from horai.db.secrets import SecretRow
from horai.operations import audit
from horai.operations.scope import Scope
from horai.operations.target_secrets import place_of_secret
from horai.text import Hint, Refused, Wrong, mismatch

MOST_SECRETS = 1_000
LONGEST_VALUE = 4_096


async def list_secrets(scope: Scope, after: str, limit: int) -> Sequence[SecretRow]:
    """Return a page of the tenant's secrets by name, without their values."""
    async with scope.read() as connection:
        return await secrets.list_secrets(connection, scope.tenant_id, after, limit)


async def create_secret(scope: Scope, name: str, value: str) -> SecretRow:
    """Create a secret. Raise `Duplicate` if the name is taken: its value stays."""
    _check(name, value)
    async with scope.write() as connection:
        made = await _insert(connection, scope, name, value)
    if made is None:
        raise Duplicate(Refused.SECRET_NAME_TAKEN(name=name), Hint.PUT_TO_REPLACE(name=name))
    return made


async def put_secret(scope: Scope, name: str, value: str) -> tuple[SecretRow, bool]:
    """Create a secret or replace its value. The second value tells whether it is new."""
    _check(name, value)
    async with scope.write() as connection:
        if (made := await _insert(connection, scope, name, value)) is not None:
            return made, True
        sealed = await scope.keyring.seal(connection, scope.tenant_id, place_of_secret(name), value)
        replaced = await secrets.replace_secret(connection, scope.tenant_id, name, sealed)
        if replaced is None:
            raise _not_found(name)
        after = {"value": "***", "version": replaced.version}
        await audit.record_write(connection, scope, AuditVerb.SECRET_REPLACE, name, name, after)
        return replaced, False


async def _insert(connection: TenantWrite, scope: Scope, name: str, value: str) -> SecretRow | None:
    """Insert a secret. Return None if there is one of this name; raise `Conflict` if the tenant has too many."""
    scope.keyring.require()
    await secrets.lock_secret_names(connection, scope.tenant_id)
    if await secrets.lock_secret(connection, scope.tenant_id, name):
        return None
    if await secrets.count_secrets(connection, scope.tenant_id) >= MOST_SECRETS:
        raise Conflict(Refused.SECRETS_FULL(most=MOST_SECRETS), Hint.DELETE_UNUSED_SECRETS())
    sealed = await scope.keyring.seal(connection, scope.tenant_id, place_of_secret(name), value)
    made = await secrets.insert_secret(connection, scope.tenant_id, name, sealed)
    if made is not None:
        after = {"value": "***", "version": made.version}
        await audit.record_write(connection, scope, AuditVerb.SECRET_CREATE, name, name, after)
    return made


async def delete_secret(scope: Scope, name: str) -> None:
    """Delete a secret. Raise `Conflict` while a job sends it.

    A job that begins to use the secret locks it meanwhile, so this check runs before or after that.
    """
    async with scope.write() as connection:
        if "\x00" in name or not await secrets.lock_secret(connection, scope.tenant_id, name):
            raise _not_found(name)
        if (job := await secrets.user_of_secret(connection, scope.tenant_id, name)) is not None:
            raise Conflict(Refused.SECRET_IN_USE(name=name, job=job), Hint.CHANGE_JOBS_FIRST())
        await secrets.delete_secret(connection, scope.tenant_id, name)
        await audit.record_write(connection, scope, AuditVerb.SECRET_DELETE, name, name)


def _check(name: str, value: str) -> None:
    if not SECRET_NAME.fullmatch(name):
        raise Invalid.field("name", mismatch(name, SECRET_NAME))
    if not 0 < len(value) <= LONGEST_VALUE or not is_header_value(value):
        raise Invalid.field("value", Wrong.SECRET_VALUE(most=LONGEST_VALUE))


def _not_found(name: str) -> NotFound:
    return NotFound(Refused.NO_SECRET(name=name[:64]), Hint.LISTED_AT(path="/api/v1/secrets"))
