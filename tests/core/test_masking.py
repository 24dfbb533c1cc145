"""Secrets are shown as `***`, and `***` keeps the stored value only where it goes to the same place."""

from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.masking import revealed_target, shown_target, shown_url

STORED = {
    "type": "http",
    "url": "https://shop.example/hook?token=canary&plain",
    "headers": {"Authorization": "Bearer canary", "X-Team": "canary"},
}
SHOWN = {
    "type": "http",
    "url": "https://shop.example/hook?token=***&***",
    "headers": {"Authorization": "***", "X-Team": "***"},
}


def test_S6_header_values_and_query_values_are_shown_as_stars() -> None:
    assert shown_target(STORED) == SHOWN
    assert shown_target({"type": "worker", "handler": "h"}) == {"type": "worker", "handler": "h"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/p", "https://h/p"),
        ("https://h/p?", "https://h/p?"),
        ("https://h/p?a=", "https://h/p?a="),
        ("https://h/p?a=b=c&&d", "https://h/p?a=***&&***"),
        ("https://h/p?a=b?c", "https://h/p?a=***"),
    ],
)
def test_S6_only_the_values_of_a_query_are_hidden(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert revealed_target({"url": shown}, {"url": url}, "target")["url"] == url


def test_S6_masked_values_are_replaced_one_by_one_by_the_stored_values() -> None:
    assert revealed_target(SHOWN, STORED, "target") == STORED
    changed = {**SHOWN, "url": "https://SHOP.example:443/other", "headers": {"authorization": "***", "X-New": "n"}}
    assert revealed_target(changed, STORED, "target") == {
        "type": "http",
        "url": "https://SHOP.example:443/other",
        "headers": {"authorization": "Bearer canary", "X-New": "n"},
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "https://evil.example/hook"}, "target.headers"),
        ({"url": "http://shop.example/hook"}, "target.headers"),
        ({"url": "https://shop.example:8443/hook"}, "target.headers"),
        ({"url": "https://shop.example@evil.example/hook"}, "target.headers"),
        ({"url": "https://shop.example/other?token=***"}, "target.url"),
        ({"headers": {"X-Other": "***"}}, "target.headers"),
    ],
)
def test_S6_stars_do_not_send_a_stored_value_to_another_place(given: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        revealed_target({**SHOWN, **given}, STORED, "target")
    assert {error.field for error in refused.value.errors} >= {field}
    assert "canary" not in str(refused.value)


def test_S6_stars_are_refused_where_nothing_is_stored() -> None:
    with pytest.raises(Invalid) as refused:
        revealed_target(SHOWN, None, "target")
    assert [error.field for error in refused.value.errors] == ["target.url", "target.headers"]


def test_S6_the_password_of_a_database_is_kept_only_with_the_whole_url() -> None:
    stored = {"type": "sql", "databaseUrl": "postgresql://u:canary@db/shop?sslpassword=canary"}
    shown = {"type": "sql", "databaseUrl": "postgresql://u:***@db/shop?sslpassword=***"}
    assert revealed_target(shown, stored, "source") == stored
    for elsewhere in ("postgresql://u:***@evil/shop", "postgresql://u@evil/shop?password=***"):
        with pytest.raises(Invalid):
            revealed_target({"type": "sql", "databaseUrl": elsewhere}, stored, "source")
