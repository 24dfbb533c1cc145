"""Payloads, results, error texts and notes of encrypted jobs: sealed before they are stored, opened where they are used.

A batch costs one statement for its data key. Values that are opened with a key in memory cost none.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from horai.core.encryption import DataKey, EnvelopeBroken, key_of, keyed_digest, seal
from horai.core.errors import KeyUnavailable
from horai.core.sealed_values import (
    SealedColumn,
    envelope_in,
    envelope_text,
    is_sealed,
    place_of_search,
    place_of_value,
    with_digests,
)
from horai.core.search_paths import values_at
from horai.db.pool import AnyRead, AnyWrite
from horai.operations.keyring import Keyring


class SealedJob(NamedTuple):
    """An encrypted job: the tenant and the name that its values are bound to, and its search paths.

    Only a sealed payload needs the search paths.
    """

    tenant_id: int
    name: str
    search_paths: Sequence[str] = ()


class SealedText(NamedTuple):
    """A stored value of an encrypted job."""

    job: SealedJob
    column: SealedColumn
    text: str


async def seal_texts(
    connection: AnyWrite, keyring: Keyring, job: SealedJob, column: SealedColumn, texts: Sequence[str | None]
) -> list[str | None]:
    """Return the texts as they are stored; None stays None. Call it in the transaction that stores them.

    A payload of a job with search paths has its digests with it. Raises `Conflict` if this process has no encryption key.
    """
    if all(text is None for text in texts):
        return list(texts)
    key = await keyring.sealing_key(connection, job.tenant_id)
    place = place_of_value(job.name, column)
    if column is SealedColumn.PAYLOAD and job.search_paths:
        return [
            text if text is None else with_digests(seal(key, place, text), _digests(key, job, text)) for text in texts
        ]
    return [text if text is None else envelope_text(seal(key, place, text)) for text in texts]


def _digests(key: DataKey, job: SealedJob, payload: str) -> dict[str, str | None]:
    """Return the digests of a payload by search path, in hexadecimal digits."""
    values = values_at(payload, job.search_paths)
    return {
        path: None if value is None else keyed_digest(key, place_of_search(job.name, path), value.encode()).hex()
        for path, value in values.items()
    }


async def seal_text(
    connection: AnyWrite, keyring: Keyring, job: SealedJob, column: SealedColumn, text: str | None
) -> str | None:
    """Return one text as it is stored."""
    return (await seal_texts(connection, keyring, job, column, [text]))[0]


async def load_keys(connection: AnyRead, keyring: Keyring, values: Iterable[SealedText]) -> None:
    """Read the data keys of all values with one statement. A broken envelope is found when it is opened."""
    wanted: set[tuple[int, str]] = set()
    for value in values:
        with suppress(EnvelopeBroken):
            wanted.add((value.job.tenant_id, key_of(envelope_in(value.text))))
    if wanted:
        await keyring.load(connection, wanted)


def open_loaded(keyring: Keyring, value: SealedText) -> str:
    """Return the value, whose data key was asked for with `load_keys`. Raises `KeyUnavailable` or `EnvelopeBroken`.

    An error text that is not an envelope is one of Horai itself, such as that of a lost attempt.
    """
    if value.column is SealedColumn.ERROR and not is_sealed(value.text):
        return value.text
    place = place_of_value(value.job.name, value.column)
    return keyring.open_loaded(value.job.tenant_id, place, envelope_in(value.text))


def opened_or_none(keyring: Keyring, value: SealedText) -> str | None:
    """Return the value, or None if it cannot be opened. Its data key was asked for with `load_keys`."""
    try:
        return open_loaded(keyring, value)
    except (KeyUnavailable, EnvelopeBroken):
        return None


async def open_text(connection: AnyRead, keyring: Keyring, value: SealedText) -> str:
    """Return one value. Raises `KeyUnavailable` or `EnvelopeBroken`."""
    await load_keys(connection, keyring, [value])
    return open_loaded(keyring, value)
