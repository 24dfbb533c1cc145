"""The same fault has the same fingerprint, another one another."""

import pytest

from horai.core.fingerprints import LENGTH, fingerprint_of, normalised

SAME = [
    ("order 17 costs -3.50", "order 4711 costs -12.00"),
    ("no user 7b0c6c3e-5d7c-4a51-9f0e-0c6a3f0f8d11", "no user 00000000-0000-4000-8000-00000000000A"),
    ("object at 0x7f3a91c2 is gone", "object at 0xDEAD is gone"),
    ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8 lost", "commit 0123456789abcdef lost"),
    ("can't open file 'a.txt' now", "can't open file 'b c.txt' now"),
    ('key "x" is taken', 'key "it\'s y" is taken'),
    ("host `db-1` is away\n  since 5 s", "host `db-2` is away since   60 s"),
]
DIFFERENT = [
    ("order 17 costs nothing", "order 17 costs too much"),
    ("can't read", "can't write"),
    ("deadbeef is a word here", "decade is a word here"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_ids_numbers_and_quoted_values_make_no_other_fault(one: str, other: str):
    assert normalised(one) == normalised(other)
    assert fingerprint_of(1, "X", one) == fingerprint_of(1, "X", other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_words_are_another_fault(one: str, other: str):
    assert fingerprint_of(1, "X", one) != fingerprint_of(1, "X", other)


def test_job_and_code_are_part_of_the_fault():
    of = {fingerprint_of(job, code, "m") for job in (1, 12) for code in ("X", "Y")}

    assert len(of) == 4
    assert all(len(fingerprint) == LENGTH for fingerprint in of)


def test_a_fingerprint_is_the_same_in_every_process_and_version():
    assert fingerprint_of(7, "HTTP_503", "the target answered 503") == "8b7b4efdabf274e5"


def test_any_text_has_a_fingerprint():
    for text in ("", "\ud800", "\x00", "'" * 2_000, "f" * 5_000, "1" * 5_000):
        assert len(fingerprint_of(1, "X", text)) == LENGTH
