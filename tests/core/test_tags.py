"""The valid tags, and the tags that a failure adds."""

import pytest

from horai.core.tags import OWN_LIMIT, TAG, is_tag, own_tags
from horai.wire.instances import OutcomeIn


@pytest.mark.parametrize("word", ["a", "bank:down", "größe", "x" * 64])
def test_a_word_can_be_a_tag(word: str):
    assert is_tag(word)
    assert own_tags([word]) == (word,)


@pytest.mark.parametrize("word", ["", "a b", "a,b", "\x00", "x" * 65, "\ud800", "a\x7f", 5, None, ["a"]])
def test_an_invalid_tag_is_ignored_and_the_other_tags_are_kept(word: object):
    assert not is_tag(word)
    assert own_tags(["a", word, "b"]) == ("a", "b")


@pytest.mark.parametrize("given", [None, "word", b"word", 5])
def test_a_value_that_is_not_a_list_has_no_tags(given: object):
    assert own_tags(given) == ()


def test_the_first_ten_different_tags_are_kept():
    assert own_tags(["a", "a", *(f"t{n}" for n in range(20))]) == ("a", *(f"t{n}" for n in range(OWN_LIMIT - 1)))


def test_the_wire_says_the_same_of_tags():
    (tags, _) = OutcomeIn.model_json_schema()["properties"]["tags"]["anyOf"]

    assert tags["maxItems"] == OWN_LIMIT
    assert tags["items"]["pattern"] == f"^{TAG.pattern}$"
