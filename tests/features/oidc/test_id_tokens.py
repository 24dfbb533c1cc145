"""The checks of an ID token, one by one, and the secrets of a sign-in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from identity_provider import signed
from joserfc.jwk import RSAKey
from rsa_keys import rsa_key

from horai.features.oidc import rules
from horai.features.oidc.rules import ALGORITHMS, Expected, UnknownKey, Unproven, is_own_page, prove, secrets_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
EXPECTED = Expected("https://id.example", "console", "nonce", "groups")


def own_key() -> RSAKey:
    return rsa_key("provider", kid="a")


def other_key() -> RSAKey:
    return rsa_key("other provider", kid="b")


def claims(**changes: Any) -> dict[str, Any]:
    seconds = int(NOW.timestamp())
    honest = {
        "iss": "https://id.example", "aud": "console", "nonce": "nonce", "sub": "ada",
        "iat": seconds, "exp": seconds + 300, "groups": ["ops"],
    }  # fmt: skip
    return {name: value for name, value in {**honest, **changes}.items() if value is not ...}


def proven(**changes: Any) -> rules.SignedInUser:
    return prove(signed(claims(**changes), own_key()), [own_key(), other_key()], EXPECTED, NOW)


def seconds_from_now(seconds: float) -> float:
    return (NOW + timedelta(seconds=seconds)).timestamp()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": ["console"]},
        {"aud": ["console", "other"], "azp": "console"},
        {"azp": "console"},
        {"exp": seconds_from_now(-59)},
        {"iat": seconds_from_now(59)},
        {"nbf": seconds_from_now(59)},
    ],
    ids=str,
)
def test_a_token_within_the_rules_proves_its_user(changes: dict[str, Any]) -> None:
    assert proven(**changes) == rules.SignedInUser("ada", "ada", ("ops",))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": ...}, "wrong audience"),
        ({"aud": []}, "wrong audience"),
        ({"aud": {"console": 1}}, "wrong audience"),
        ({"aud": "consol"}, "wrong audience"),
        ({"aud": ["console", "other"]}, "another party"),
        ({"aud": ["console", "other"], "azp": "other"}, "another party"),
        ({"iss": ...}, "wrong issuer"),
        ({"iss": ["https://id.example"]}, "wrong issuer"),
        ({"exp": seconds_from_now(-60)}, "expired"),
        ({"exp": "never"}, "expired"),
        ({"exp": True}, "expired"),
        ({"exp": 10**400}, "expired"),
        ({"iat": ...}, "future"),
        ({"iat": seconds_from_now(61)}, "future"),
        ({"nbf": seconds_from_now(61)}, "not valid yet"),
        ({"nbf": None}, "not valid yet"),
        ({"nonce": 7}, "nonce"),
        ({"nonce": "nönce"}, "nonce"),
        ({"sub": "x" * 256}, "subject"),
        ({"sub": "a\nb"}, "subject"),
        ({"sub": ["ada"]}, "subject"),
        ({"groups": [f"g{n}" for n in range(1001)]}, "groups"),
    ],
    ids=str,
)
def test_a_token_outside_the_rules_proves_nothing(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unproven, match=reason):
        proven(**changes)


def test_a_token_names_its_key_unless_the_provider_has_only_one() -> None:
    nameless = signed(claims(), RSAKey.import_key(_without_id()))
    assert prove(nameless, [own_key()], EXPECTED, NOW).subject == "ada"
    with pytest.raises(Unproven, match="several keys"):
        prove(nameless, [own_key(), other_key()], EXPECTED, NOW)
    with pytest.raises(UnknownKey):
        prove(signed(claims(), own_key()), [other_key()], EXPECTED, NOW)


def _without_id() -> dict[str, Any]:
    return {name: value for name, value in own_key().as_dict(private=True).items() if name != "kid"}


def test_a_key_for_another_algorithm_or_use_verifies_nothing() -> None:
    token = signed(claims(), own_key())
    public = own_key().as_dict(private=False)
    with pytest.raises(Unproven, match="another algorithm"):
        prove(token, rules.public_keys({"keys": [{**public, "alg": "PS256"}]}), EXPECTED, NOW)
    with pytest.raises(UnknownKey):
        prove(token, rules.public_keys({"keys": [{**public, "use": "enc"}]}), EXPECTED, NOW)


def test_no_algorithm_with_a_shared_secret_or_none_is_allowed() -> None:
    assert not [name for name in ALGORITHMS if name.startswith(("HS", "none"))]


@pytest.mark.parametrize("document", [None, [], {}, {"keys": {}}, {"keys": "x"}])
def test_a_document_without_a_list_of_keys_is_no_key_set(document: Any) -> None:
    with pytest.raises(Unproven):
        rules.public_keys(document)


@pytest.mark.parametrize(
    "key",
    [
        None, "x", {}, {"kty": "oct", "k": "c2hhcmVkLXNlY3JldC1vZi1lbm91Z2gtYnl0ZXM"}, {"kty": "RSA"}, {"kty": "RSA", "n": 1, "e": 2},
        {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, {"kty": ["RSA"]},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    ],
    ids=str,
)  # fmt: skip
def test_a_key_of_another_kind_is_left_out_and_the_others_count(key: Any) -> None:
    found = rules.public_keys({"keys": [key, own_key().as_dict(private=False)]})
    assert [each.kid for each in found] == ["a"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"name": "Ada L.", "email": "a@example.com"}, "Ada L."),
        ({"name": " ", "preferred_username": "ada.l"}, "ada.l"),
        ({"name": 7, "email": "a@example.com"}, "a@example.com"),
        ({"name": "A\r\nd\x1ba"}, "A d a"),
        ({"name": "x" * 300}, "x" * 200),
        ({}, "ada"),
    ],
    ids=str,
)
def test_the_name_of_a_user_is_the_first_that_the_token_has(given: dict[str, Any], name: str) -> None:
    assert proven(**given).name == name


def test_groups_that_are_no_texts_are_left_out() -> None:
    assert proven(groups="ops").groups == ("ops",)
    assert proven(groups=["a", 7, "", "b" * 257, "a", "c\x00d", "e"]).groups == ("a", "e")
    assert proven(groups=...).groups == ()


def test_nonce_and_verifier_depend_on_the_browser_and_on_the_state() -> None:
    found = {secrets_of(browser, state).verifier for browser in "ab" for state in "cd"}
    nonces = {secrets_of(browser, state).nonce for browser in "ab" for state in "cd"}
    assert len(found | nonces) == 8
    assert {len(verifier) for verifier in found} == {43}
    assert "nonce" not in repr(secrets_of("a", "b"))


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/7?tab=log#x", "/a%20b"])
def test_a_page_of_this_server_is_a_place_to_return_to(path: str) -> None:
    assert is_own_page(path)
