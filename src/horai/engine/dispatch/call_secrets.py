"""The opened secrets of HTTP calls: headers and query values of targets, and signing secrets.

A job without sealed or named secrets costs nothing here. Opened values are used while their data key is fresh, so that an
erased key takes effect. A job with named secrets asks for them again when its definition is read again, at most once a
second, so that a replaced secret takes effect without a change of the job.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

import structlog

from horai.core.calls import KEY_UNAVAILABLE, HttpTarget
from horai.core.encryption import Envelope, EnvelopeBroken, is_envelope, key_of
from horai.core.errors import KeyUnavailable
from horai.core.job import Recipe, read_target, target_document
from horai.core.masking import joined_secrets
from horai.db import secrets
from horai.db.jobs import Runnable
from horai.db.pool import Platform
from horai.db.secrets import SealedSecret
from horai.db.signing_secrets import CallbackSettings
from horai.operations.keyring import Keyring
from horai.operations.signing_secrets import SIGNING_PLACE
from horai.operations.target_secrets import place_of_secret, place_of_target

log = structlog.get_logger(__name__)

DataKeyName = tuple[int, str]
"""A tenant and the id of one of its data keys."""
SECRET_MISSING = "SECRET_MISSING"  # noqa: S105 - a code
SECRET_UNREADABLE = "SECRET_UNREADABLE"  # noqa: S105 - a code


class CallSecrets:
    """The opened secrets of the calls of this process."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._stored: dict[int, Runnable] = {}
        """The jobs, as stored, whose targets have sealed or named secrets."""
        self._opened: dict[str, tuple[DataKeyName, str]] = {}
        """Signing secrets by their stored text, with the data keys that opened them."""

    def note(self, job: Runnable) -> bool:
        """Keep the job if its target has secrets to open. Return whether it does."""
        has_secrets = job.recipe is not None and not _is_complete(job.recipe)
        if has_secrets:
            self._stored[job.id] = job
        elif self._stored:
            self._stored.pop(job.id, None)
        return has_secrets

    def forget(self) -> None:
        """Forget every job."""
        self._stored.clear()

    def close(self) -> Iterable[Runnable]:
        """Forget all opened values. Return the jobs as they are stored."""
        self._keyring.forget()
        self._opened.clear()
        return self._stored.values()

    async def opened(
        self, connection: Platform, known: Mapping[int, Runnable], job_ids: Iterable[int], changed: Iterable[int]
    ) -> dict[int, Runnable]:
        """Return those of the jobs that have secrets, ready to be called.

        Jobs that are not `changed` are opened again only if they have named secrets, could not be opened before, or
        were opened with a data key that is no longer fresh.
        """
        if not self._stored:
            return {}
        fresh = set(changed)
        jobs = [
            self._stored[i]
            for i in job_ids
            if i in self._stored and (i in fresh or not self._may_stay(self._stored[i], known.get(i)))
        ]
        if not jobs:
            return {}
        wanted = {(job.tenant_id, name) for job in jobs for name in _target(job).named.values()}
        found = await secrets.secret_values(connection, wanted) if wanted else []
        named = {(secret.tenant_id, secret.name): secret for secret in found}
        await self._load(connection, jobs, found)
        return {job.id: self._open(job, named) for job in jobs}

    def _may_stay(self, stored: Runnable, opened: Runnable | None) -> bool:
        target = _target(stored)
        keys = _keys_of([(stored.tenant_id, target.sealed)])
        return not target.named and _is_ready(opened) and all(self._keyring.is_fresh(*key) for key in keys)

    async def _load(self, connection: Platform, jobs: Iterable[Runnable], named: Iterable[SealedSecret]) -> None:
        """Read the data keys of all envelopes with one statement. A broken envelope is found when it is opened."""
        envelopes: list[tuple[int, object]] = [(job.tenant_id, _target(job).sealed) for job in jobs]
        envelopes += [(secret.tenant_id, secret.value) for secret in named]
        await self._keyring.load(connection, _keys_of(envelopes))

    def _open(self, job: Runnable, named: Mapping[tuple[int, str], SealedSecret]) -> Runnable:
        assert job.recipe is not None  # noqa: S101 — `note` has read it
        target = _target(job)
        try:
            headers = dict(target.headers)
            if target.sealed is not None:
                target = self._unsealed(job, target, target.sealed)
                headers = dict(target.headers)
            for header, name in target.named.items():
                secret = named.get((job.tenant_id, name))
                if secret is None:
                    return _faulty(job, SECRET_MISSING)
                headers[header] = self._keyring.open_loaded(job.tenant_id, place_of_secret(name), secret.value)
        except KeyUnavailable:
            log.warning("calls wait: their encryption key is not available", job=job.name, tenant=job.tenant)
            return _faulty(job, KEY_UNAVAILABLE)
        except (EnvelopeBroken, ValueError):
            log.error("the secrets of a target cannot be read", job=job.name, tenant=job.tenant)
            return _faulty(job, SECRET_UNREADABLE)
        ready = HttpTarget(target.url, target.method, headers, batch_size=target.batch_size)
        return replace(job, recipe=replace(job.recipe, target=ready))

    def _unsealed(self, job: Runnable, target: HttpTarget, envelope: Envelope) -> HttpTarget:
        document = target_document(target)
        text = self._keyring.open_loaded(job.tenant_id, place_of_target(job.name, document), envelope)
        opened = read_target({"target": joined_secrets(document, json.loads(text))})
        assert isinstance(opened, HttpTarget)  # noqa: S101 — only HTTP targets are sealed
        return opened

    async def signing(self, connection: Platform, stored: Sequence[CallbackSettings]) -> dict[str, CallbackSettings]:
        """Return the settings by tenant, with opened secrets. A secret that cannot be opened is left out."""
        sealed = {
            text: (each, _envelope_in(text))
            for each in stored
            for text in each.secrets
            if text.startswith("{") and not self._is_open(text)
        }
        if sealed:
            envelopes = ((each.tenant_id, envelope) for each, envelope in sealed.values())
            await self._keyring.load(connection, _keys_of(envelopes))
        texts = {text for each in stored for text in each.secrets}
        self._opened = {text: kept for text, kept in self._opened.items() if text in texts and text not in sealed}
        for text, (each, envelope) in sealed.items():
            try:
                secret = self._keyring.open_loaded(each.tenant_id, SIGNING_PLACE, envelope)
                self._opened[text] = (each.tenant_id, key_of(envelope)), secret
            except (KeyUnavailable, EnvelopeBroken) as error:
                log.warning("a signing secret cannot be opened", tenant=each.tenant, error=error.code)
        return {each.tenant: replace(each, secrets=tuple(self._readable(each.secrets))) for each in stored}

    def _is_open(self, text: str) -> bool:
        found = self._opened.get(text)
        return found is not None and self._keyring.is_fresh(*found[0])

    def _readable(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if not text.startswith("{"):
                yield text
            elif text in self._opened:
                yield self._opened[text][1]


def _envelope_in(text: str) -> Envelope:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _keys_of(envelopes: Iterable[tuple[int, object]]) -> set[DataKeyName]:
    """Return the data keys of envelopes by tenant and id, without broken envelopes: their own tenant's calls fail."""
    found: set[DataKeyName] = set()
    for tenant_id, envelope in envelopes:
        if is_envelope(envelope):
            with suppress(EnvelopeBroken):
                found.add((tenant_id, key_of(cast("Envelope", envelope))))
    return found


def _target(job: Runnable) -> HttpTarget:
    target = None if job.recipe is None else job.recipe.target
    assert isinstance(target, HttpTarget)  # noqa: S101 — only such jobs are kept
    return target


def _is_complete(recipe: Recipe) -> bool:
    return not isinstance(recipe.target, HttpTarget) or recipe.target.is_complete


def _is_ready(job: Runnable | None) -> bool:
    return job is not None and job.recipe is not None and _is_complete(job.recipe)


def _faulty(job: Runnable, fault: str) -> Runnable:
    assert job.recipe is not None  # noqa: S101 — `note` has read it
    return replace(job, recipe=replace(job.recipe, target=replace(_target(job), fault=fault)))
