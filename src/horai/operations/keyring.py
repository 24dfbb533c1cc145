"""The keyring of a process: it seals values with the tenant's data key of the month, and opens envelopes.

The key-encryption keys come from the operator, the wrapped data keys from the database. Unwrapped data keys are used for
five seconds; when keys are erased, every node forgets at once. A node that hears nothing opens values with an erased key
for five seconds at most. A value is sealed in the transaction that stores it, which locks the data key against erasure.
"""

import hmac
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import structlog

from horai.core.encryption import (
    DataKey,
    EncryptionKeyUnusable,
    Envelope,
    EnvelopeBroken,
    KeyEncryptionKey,
    Place,
    key_of,
    key_of_digest,
    keyed_digest,
    new_data_key,
    new_encryption_key,
    read_encryption_keys,
    seal,
    unseal,
    unwrap,
    wrap,
)
from horai.core.errors import Conflict, KeyUnavailable
from horai.core.settings import EngineSettings
from horai.core.wakes import DataKeysWake
from horai.db import data_keys
from horai.db.data_keys import WrappedKey
from horai.db.pool import AnyRead, AnyWrite, Platform
from horai.db.wakeups import Wakeups
from horai.operations.key_command import keys_of_command
from horai.text import Hint, Refused

log = structlog.get_logger(__name__)

REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000
LOADS = 3
"""The most reads of one `load`. It reads again if keys were erased meanwhile."""
FILE_NAME = "encryption.key"
ENCRYPTION_KEY = "HORAI_ENCRYPTION_KEY"
"""The environment variable of the keys. With `_FILE` it names a file of them, with `_COMMAND` a command that writes them."""


class Keyring:
    """The key-encryption keys of a process; the first one wraps new data keys. Without keys it seals nothing."""

    def __init__(self, keys: Sequence[KeyEncryptionKey] = (), monotonic: Callable[[], float] = time.monotonic) -> None:
        self._keys = {key.id: key for key in keys}
        self._first = keys[0] if keys else None
        self._monotonic = monotonic
        self._known: dict[tuple[int, str], tuple[DataKey, float]] = {}
        self._newest: dict[int, tuple[DataKey, float]] = {}
        """The newest data keys of tenants, for digests."""
        self._erasures = 0

    def forget(self) -> None:
        """Forget all data keys, because some were erased. A query in progress may have read them: it is repeated."""
        self._known.clear()
        self._newest.clear()
        self._erasures += 1

    def forget_when_erased(self, wakeups: Wakeups) -> Self:
        """Forget whenever a process erases keys. Return this keyring."""
        wakeups.subscribe(DataKeysWake, lambda _: self.forget())
        return self

    @property
    def is_on(self) -> bool:
        """Return whether values can be sealed."""
        return self._first is not None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the key-encryption keys; the first one wraps."""
        return tuple(self._keys)

    def require(self) -> KeyEncryptionKey:
        """Return the key that wraps. Raises `Conflict` if this process has none."""
        if self._first is None:
            raise Conflict(Refused.NO_ENCRYPTION_KEY(), Hint.GIVE_ENCRYPTION_KEY())
        return self._first

    def require_for_job(self) -> None:
        """Raise `Conflict` if this process has no key, and so cannot serve an encrypted job."""
        if self._first is None:
            raise Conflict(Refused.NO_KEY_FOR_JOB(), Hint.GIVE_ENCRYPTION_KEY())

    async def seal(self, connection: AnyWrite, tenant_id: int, place: Place, text: str) -> dict[str, Any]:
        """Return the envelope of a text, sealed with the tenant's key of this month. Call it in a transaction."""
        return seal(await self._current(connection, tenant_id), place, text)

    async def sealing_key(self, connection: AnyWrite, tenant_id: int) -> DataKey:
        """Return the tenant's key of this month, to seal many values of encrypted jobs. Call it in a transaction.

        Raises `Conflict` if this process has no key.
        """
        self.require_for_job()
        return await self._current(connection, tenant_id)

    async def open(self, connection: AnyRead, tenant_id: int, place: Place, envelope: Envelope) -> str:
        """Return the text of an envelope.

        Raises `KeyUnavailable` if its data key was erased or this process lacks the key that wraps it, and
        `EnvelopeBroken` if the envelope was changed or belongs to another place.
        """
        wanted = (tenant_id, key_of(envelope))
        await self.load(connection, [wanted])
        return self.open_loaded(tenant_id, place, envelope)

    def open_loaded(self, tenant_id: int, place: Place, envelope: Envelope) -> str:
        """Return the text of an envelope whose data key was asked for with `load`. Raises as `open` does."""
        found = self._known.get((tenant_id, key_of(envelope)))
        if found is None:
            raise KeyUnavailable(Refused.KEY_UNAVAILABLE(), Hint.GIVE_OLD_ENCRYPTION_KEY())
        return unseal(found[0], place, envelope)

    async def digest(self, connection: AnyWrite, tenant_id: int, place: Place, content: bytes) -> bytes | None:
        """Return a keyed digest under the tenant's newest data key. Call it in a transaction.

        Return None if this process cannot seal values of the tenant. The key is read once in five seconds.
        """
        if self._first is None:
            return None
        try:
            return keyed_digest(await self._newest_key(connection, tenant_id), place, content)
        except (KeyUnavailable, EnvelopeBroken):
            return None

    async def lasting_key(self, connection: AnyWrite, tenant_id: int) -> DataKey:
        """Return the tenant's first data key, for digests that stay equal in the months that follow. Call it in a transaction.

        Raises `Conflict` if this process has no key, and `KeyUnavailable` if it lacks the one that wraps the data key.
        """
        self.require_for_job()
        row = await data_keys.oldest_data_key(connection, tenant_id)
        if row is None:
            return await self._current(connection, tenant_id)
        if row.kek not in self._keys:
            raise KeyUnavailable(Refused.KEY_UNAVAILABLE(), Hint.GIVE_OLD_ENCRYPTION_KEY())
        return self._unwrapped(row)

    def digest_in_memory(self, tenant_id: int, place: Place, content: bytes) -> bytes | None:
        """Return the same digest without a query; None if the tenant's newest data key was not read in the last five seconds."""
        known = self._newest.get(tenant_id)
        return keyed_digest(known[0], place, content) if known is not None and self._monotonic() < known[1] else None

    async def digests(self, connection: AnyRead, tenant_id: int, place: Place, content: bytes) -> list[bytes]:
        """Return the digests of a content under all data keys of the tenant.

        Raises `KeyUnavailable` if this process lacks the key that wraps one of them: a search would miss its values.
        """
        rows = await data_keys.data_keys_of_tenant(connection, tenant_id)
        if any(row.kek not in self._keys for row in rows):
            raise KeyUnavailable(Refused.KEY_UNAVAILABLE(), Hint.GIVE_OLD_ENCRYPTION_KEY())
        return [keyed_digest(self._unwrapped(row), place, content) for row in rows]

    async def has_digest(
        self, connection: AnyRead, tenant_id: int, place: Place, content: bytes, digest: bytes
    ) -> bool:
        """Return whether `digest` is the keyed digest of this content. Raises `KeyUnavailable` without its data key."""
        wanted = (tenant_id, key_of_digest(digest) or "")
        await self.load(connection, [wanted])
        found = self._known.get(wanted)
        if found is None:
            raise KeyUnavailable(Refused.KEY_UNAVAILABLE(), Hint.GIVE_OLD_ENCRYPTION_KEY())
        return hmac.compare_digest(keyed_digest(found[0], place, content), digest)

    async def _newest_key(self, connection: AnyWrite, tenant_id: int) -> DataKey:
        now, erasures = self._monotonic(), self._erasures
        known = self._newest.get(tenant_id)
        if known is not None and now < known[1]:
            return known[0]
        row = await data_keys.newest_data_key(connection, tenant_id)
        if row is None or row.kek not in self._keys:
            return await self._current(connection, tenant_id)  # not remembered: its transaction may roll back
        key = self._unwrapped(row)
        if erasures == self._erasures:
            if len(self._newest) >= MOST_REMEMBERED:
                self._newest.clear()
            self._newest[tenant_id] = key, now + REMEMBERED_SECONDS
        return key

    def is_fresh(self, tenant_id: int, key_id: str) -> bool:
        """Return whether a value that this data key has opened may still be used."""
        found = self._known.get((tenant_id, key_id))
        return found is not None and self._monotonic() < found[1]

    async def load(self, connection: AnyRead, wanted: Iterable[tuple[int, str]]) -> None:
        """Read data keys by tenant and id, with one statement for those that are not in memory.

        Values that are opened without waiting afterwards were opened with keys that no heard erasure concerns.
        """
        wanted = set(wanted)
        for _ in range(LOADS):
            missing = {key for key in wanted if not self.is_fresh(*key)}
            if not missing:
                return
            now, erasures = self._monotonic(), self._erasures
            for key in missing:
                self._known.pop(key, None)
            rows = await data_keys.data_keys(connection, missing)
            if erasures == self._erasures:
                self._remember(rows, now)
                return

    async def _current(self, connection: AnyWrite, tenant_id: int) -> DataKey:
        wrapping = self.require()
        row = await data_keys.current_data_key(connection, tenant_id)
        if row is None:
            made = new_data_key(tenant_id)
            await data_keys.insert_data_key(
                connection, WrappedKey(tenant_id, made.id, wrap(wrapping, made), wrapping.id)
            )
            row = await data_keys.current_data_key(connection, tenant_id)
        if row is None or row.kek not in self._keys:
            raise KeyUnavailable(Refused.KEY_UNAVAILABLE(), Hint.GIVE_OLD_ENCRYPTION_KEY())
        return self._unwrapped(row)

    def _unwrapped(self, row: WrappedKey) -> DataKey:
        return unwrap(self._keys[row.kek], row.tenant_id, row.id, row.wrapped)

    def _remember(self, rows: Sequence[WrappedKey], now: float) -> None:
        if len(self._known) + len(rows) > MOST_REMEMBERED:
            self._known.clear()
        for row in rows:
            if row.kek in self._keys:
                try:
                    self._known[row.tenant_id, row.id] = self._unwrapped(row), now + REMEMBERED_SECONDS
                except EnvelopeBroken:  # the keys of other tenants are not concerned
                    log.error("a data key cannot be unwrapped: its row was changed", tenant=row.tenant_id, key=row.id)

    async def rewrap(self, connection: Platform, limit: int) -> int:
        """Wrap up to `limit` data keys again under the first key. Return how many there were."""
        wrapping = self.require()
        async with connection.transaction():
            rows = await data_keys.data_keys_to_rewrap(connection, wrapping.id, self.ids, limit)
            fresh = [
                WrappedKey(row.tenant_id, row.id, wrap(wrapping, self._unwrapped(row)), wrapping.id) for row in rows
            ]
            await data_keys.rewrap_data_keys(connection, fresh, wrapping.id)
        return len(rows)


def keyring_of(settings: EngineSettings) -> Keyring:
    """Return the keyring of a process. Raises `EncryptionKeyUnusable` if the file of its keys cannot be used."""
    if settings.encryption_keys or settings.encryption_key_file is None:
        return Keyring(settings.encryption_keys)
    return Keyring(load_encryption_keys(settings.encryption_key_file))


def with_process_keys(engine: EngineSettings, environ: Mapping[str, str], data_dir: Path | None) -> EngineSettings:
    """Return the settings of a process that has no flags for its keys, such as an application with the SDK.

    The keys are those of the variables, as in `with_given_keys`, or beside the embedded database in `data_dir`. Raises
    `EncryptionKeyUnusable`.
    """
    if engine.encryption_keys or engine.encryption_key_file is not None:
        return engine
    file, command = (environ.get(f"{ENCRYPTION_KEY}_{kind}") for kind in ("FILE", "COMMAND"))
    engine = with_given_keys(engine, file, command, environ.get(ENCRYPTION_KEY))
    if engine.encryption_keys or engine.encryption_key_file is not None:
        return engine
    if data_dir is not None and Path(own := encryption_key_in(data_dir.absolute())).exists():
        return replace(engine, encryption_key_file=own)
    return engine


def with_given_keys(engine: EngineSettings, file: str | None, command: str | None, text: str | None) -> EngineSettings:
    """Return the settings with the encryption keys of a file, of a command that is run here, or of a text.

    The first of them that is given counts. Raises `EncryptionKeyUnusable`.
    """
    if file:
        return replace(engine, encryption_key_file=str(Path(file).absolute()))
    if command:
        return replace(engine, encryption_keys=keys_of_command(command), encryption_key_command=command)
    return replace(engine, encryption_keys=read_encryption_keys(text, ENCRYPTION_KEY)) if text else engine


def load_encryption_keys(file: str) -> tuple[KeyEncryptionKey, ...]:
    """Read the keys of a file. Raises `EncryptionKeyUnusable`."""
    try:
        text = Path(file).read_text("ascii")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not base64"
        raise EncryptionKeyUnusable(
            f"The encryption key of {file} cannot be used: {reason}.",
            "Restore the file from your backup: without its key, the secrets in the database cannot be read.",
        ) from error
    return read_encryption_keys(text, file)


def encryption_key_in(data_dir: Path) -> str:
    """Return the file of the key that belongs to an embedded database."""
    return str(data_dir / FILE_NAME)


async def make_first_key(connection: Platform, file: str) -> None:
    """Write a new key that only this user can read, unless the file exists or the database has sealed values.

    A database with sealed values has lost its key: a new one would hide the loss until the first value is needed.
    """
    if not await data_keys.count_data_keys(connection):
        _make_key(file)


def _make_key(file: str) -> None:
    draft = f"{file}.{os.urandom(6).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(new_encryption_key() + "\n")
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(draft, file)  # unlike a rename, it never replaces a key
        except FileExistsError:
            return
    finally:
        Path(draft).unlink()
