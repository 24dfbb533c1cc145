"""Envelopes: what they hold, what they are bound to, and every way in which they refuse to open."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.encryption import (
    DataKey,
    EncryptionKeyUnusable,
    Envelope,
    EnvelopeBroken,
    KeyEncryptionKey,
    is_envelope,
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

PLACE = ("job", "nightly", "target", "https://example.com:443")


def kek() -> KeyEncryptionKey:
    return KeyEncryptionKey(os.urandom(32))


@given(st.text())
def test_a_text_comes_back_from_its_envelope_and_is_not_in_it(text: str) -> None:
    key = new_data_key(7)
    envelope = seal(key, PLACE, text)
    assert unseal(key, PLACE, envelope) == text
    assert (is_envelope(envelope), key_of(envelope)) == (True, key.id)
    assert len(text) < 8 or text not in str(envelope)
    assert seal(key, PLACE, text) != envelope, "each envelope has a nonce of its own"


@pytest.mark.parametrize(
    "place",
    [
        ("job", "other", "target", "https://example.com:443"),
        ("job", "nightly", "payload", "https://example.com:443"),
        ("job", "nightly", "target", "https://evil.example:443"),
        ("reconciler", "nightly", "target", "https://example.com:443"),
        ("job", "nightly", "target"),
        ("job", "nightly", 'target", "https://example.com:443'),
    ],
)
def test_C42c_an_envelope_that_was_moved_to_another_place_does_not_open(place: tuple[str, ...]) -> None:
    key = new_data_key(7)
    with pytest.raises(EnvelopeBroken):
        unseal(key, place, seal(key, PLACE, "canary"))


def test_C42b_an_envelope_of_another_tenant_or_key_id_does_not_open() -> None:
    key = new_data_key(7)
    envelope = seal(key, PLACE, "canary")
    for other in (DataKey(8, key.id, key.key), DataKey(7, "f" * 16, key.key), new_data_key(7)):
        with pytest.raises(EnvelopeBroken):
            unseal(other, PLACE, envelope)


@pytest.mark.parametrize("member", ["n", "c"])
def test_C42c_an_envelope_with_any_changed_byte_does_not_open(member: str) -> None:
    key = new_data_key(7)
    envelope = seal(key, PLACE, "canary")
    content = base64.b64decode(envelope[member])
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        with pytest.raises(EnvelopeBroken) as refused:
            unseal(key, PLACE, {**envelope, member: base64.b64encode(changed).decode()})
        assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        {}, {"$enc": 1}, {"$enc": 2, "k": "a", "n": "", "c": ""}, {"$enc": 1, "k": 5, "n": "", "c": ""},
        {"$enc": 1, "k": "a", "n": "!", "c": "!"}, {"$enc": 1, "k": "a", "n": None, "c": 1},
        {"$enc": 1, "k": "a", "n": "", "c": "", "more": 1},
    ],
)  # fmt: skip
def test_a_value_that_is_not_an_envelope_is_refused_as_one(value: Envelope) -> None:
    with pytest.raises(EnvelopeBroken):
        unseal(new_data_key(7), PLACE, value)


def test_C42c_a_wrapped_key_opens_only_with_its_own_key_tenant_and_id() -> None:
    wrapping, key = kek(), new_data_key(7)
    wrapped = wrap(wrapping, key)
    assert unwrap(wrapping, 7, key.id, wrapped) == key
    assert key.key not in wrapped
    for attempt in (
        (kek(), 7, key.id, wrapped),
        (wrapping, 8, key.id, wrapped),
        (wrapping, 7, "f" * 16, wrapped),
        (wrapping, 7, key.id, wrapped[:-1]),
        (wrapping, 7, key.id, b""),
    ):
        with pytest.raises(EnvelopeBroken):
            unwrap(*attempt)


def test_keys_are_read_in_order_and_never_shown() -> None:
    first, second = new_encryption_key(), new_encryption_key()
    keys = read_encryption_keys(f"{first}\n{second}\n", "the test")
    assert [key.key for key in keys] == [base64.b64decode(first), base64.b64decode(second)]
    assert read_encryption_keys(f"{first}, {second}", "the test") == keys
    assert first not in repr(keys)
    assert repr(base64.b64decode(first)) not in repr(keys)
    assert [len(key.id) for key in keys] == [16, 16]
    assert "key=" not in repr(new_data_key(7))


@pytest.mark.parametrize("text", ["", " \n", "hunter2", base64.b64encode(b"short").decode(), "ä"])
def test_a_text_that_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(EncryptionKeyUnusable) as refused:
        read_encryption_keys(text, "HORAI_ENCRYPTION_KEY")
    assert "HORAI_ENCRYPTION_KEY" in refused.value.detail
    assert "openssl rand -base64 32" in str(refused.value.hint)
    assert not text.strip() or text not in refused.value.detail


def test_C42c_a_digest_depends_on_the_data_key_the_tenant_the_place_and_the_content() -> None:
    key = new_data_key(7)
    digest = keyed_digest(key, PLACE, b"canary")
    assert digest == keyed_digest(key, PLACE, b"canary")
    others = [
        keyed_digest(key, PLACE, b"Canary"),
        keyed_digest(key, (*PLACE, "x"), b"canary"),
        keyed_digest(DataKey(8, key.id, key.key), PLACE, b"canary"),
        keyed_digest(DataKey(7, key.id, os.urandom(32)), PLACE, b"canary"),
    ]
    assert len({each[9:] for each in (digest, *others)}) == 5
    assert key_of_digest(digest) == key.id
    assert key_of_digest(os.urandom(32)) is None, "a SHA-256, as earlier versions store it"
