"""When live rows may be new: the mark moves before a commit, and transactions end in any order."""

from horai.core.change_marks import ChangeDetector, ChangeMark


def looks(*marks: ChangeMark) -> list[bool]:
    news = ChangeDetector()
    return [news.is_look_due(mark) for mark in marks]


def test_the_first_mark_calls_for_a_look_and_a_quiet_database_for_one_more():
    assert looks(ChangeMark(1, 10, 10), ChangeMark(1, 11, 11), ChangeMark(1, 12, 12)) == [True, True, False]


def test_each_move_of_the_mark_calls_for_looks():
    quiet = (ChangeMark(1, 10, 10), ChangeMark(1, 10, 10), ChangeMark(1, 10, 10))
    assert looks(*quiet, ChangeMark(2, 11, 11), ChangeMark(2, 12, 12), ChangeMark(2, 13, 13)) == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]


def test_a_mark_that_went_back_has_moved():
    assert looks(ChangeMark(40, 1, 1), ChangeMark(40, 1, 1), ChangeMark(8, 1, 1)) == [True, True, True]


def test_looks_go_on_until_the_transaction_that_moved_the_mark_has_ended():
    held = [ChangeMark(2, 10, 11 + n) for n in range(5)]
    assert looks(*held, ChangeMark(2, 14, 16), ChangeMark(2, 17, 17)) == [True, True, True, True, True, True, False]


def test_a_transaction_that_began_after_the_mark_was_read_is_not_waited_for():
    """The bound is the one of the first snapshot after the move: 12. Transaction 12 is open for ever."""
    assert looks(ChangeMark(2, 10, 11), ChangeMark(2, 10, 12), ChangeMark(2, 12, 13), ChangeMark(2, 12, 14)) == [
        True,
        True,
        True,
        False,
    ]


def test_a_transaction_that_began_between_the_snapshot_and_the_mark_is_waited_for():
    """Its id, 11, is not below the bound of the snapshot that came with the moved mark."""
    assert looks(ChangeMark(2, 11, 11), ChangeMark(2, 11, 12), ChangeMark(2, 11, 13), ChangeMark(2, 12, 13)) == [
        True,
        True,
        True,
        True,
    ]
