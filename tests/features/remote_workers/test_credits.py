"""Credits of remote workers: no session gets more than it has room for, and none of another tenant or queue."""

from horai.features.remote_workers.rules import CreditBook, SessionSlots, WorkOffer, WorkPool

ECHO = WorkPool(1, "default", "echo")


def offer(tenant: int = 1, queues: frozenset[str] | None = None, **caps: int) -> WorkOffer:
    return WorkOffer(tenant, frozenset(caps.items()), queues)


def opened(book: CreditBook, what: WorkOffer, total: int) -> SessionSlots:
    slots, _ = book.enter(what, total)
    book.set_open(slots, is_open=True)
    return slots


def taken(book: CreditBook, pool: WorkPool) -> SessionSlots | None:
    slots = book.choose(pool)
    if slots is not None:
        book.take(slots, pool.handler)
    return slots


def test_the_room_of_a_pool_is_that_of_all_its_sessions():
    book = CreditBook()
    book.see(ECHO)
    opened(book, offer(echo=0), 2)
    opened(book, offer(echo=0), 3)
    assert (book.room(ECHO.name), book.free) == (5, 5)


def test_a_session_takes_no_more_calls_than_it_has_credits():
    book = CreditBook()
    book.see(ECHO)
    slots = opened(book, offer(echo=0), 2)
    assert [taken(book, ECHO) for _ in range(3)] == [slots, slots, None]
    book.give_back(slots, "echo")
    assert book.room(ECHO.name) == 1


def test_sessions_take_turns():
    book = CreditBook()
    first, second = opened(book, offer(echo=0), 2), opened(book, offer(echo=0), 2)
    assert [taken(book, ECHO) for _ in range(4)] == [first, second, first, second]


def test_a_session_gets_no_work_of_another_tenant():
    book = CreditBook()
    book.see(ECHO)
    opened(book, offer(tenant=2, echo=0), 2)
    assert (book.room(ECHO.name), book.choose(ECHO), book.covers(ECHO)) == (0, None, False)


def test_a_session_gets_no_work_of_another_queue():
    book = CreditBook()
    book.see(ECHO)
    opened(book, offer(queues=frozenset({"mail"}), echo=0), 2)
    assert (book.room(ECHO.name), book.covers(ECHO)) == (0, False)
    assert book.covers(WorkPool(1, "mail", "echo"))


def test_a_session_gets_no_work_of_a_handler_that_it_does_not_offer():
    book = CreditBook()
    opened(book, offer(echo=0), 2)
    assert not book.covers(WorkPool(1, "default", "other"))


def test_a_handler_with_a_limit_leaves_the_other_slots_free():
    book = CreditBook()
    slow = WorkPool(1, "default", "slow")
    book.see(ECHO)
    book.see(slow)
    slots = opened(book, offer(echo=0, slow=1), 3)
    assert (book.room(slow.name), book.room(ECHO.name)) == (1, 3)
    assert [taken(book, slow), taken(book, slow)] == [slots, None]
    assert (book.room(slow.name), book.room(ECHO.name)) == (0, 2)
    assert [taken(book, ECHO), taken(book, ECHO), taken(book, ECHO)] == [slots, slots, None]
    book.give_back(slots, "slow")
    assert (book.room(slow.name), book.room(ECHO.name)) == (1, 1)


def test_a_closed_session_has_no_room_and_an_opened_one_has_it_again():
    book = CreditBook()
    book.see(ECHO)
    slots = opened(book, offer(echo=0), 2)
    book.set_open(slots, is_open=False)
    assert (book.room(ECHO.name), book.choose(ECHO)) == (0, None)
    book.set_open(slots, is_open=True)
    assert book.room(ECHO.name) == 2


def test_a_session_with_fewer_credits_than_calls_gets_none_until_they_end():
    book = CreditBook()
    book.see(ECHO)
    slots = opened(book, offer(echo=0), 3)
    for _ in range(3):
        taken(book, ECHO)
    book.set_total(slots, 1)
    for room in (0, 0, 1):
        book.give_back(slots, "echo")
        assert book.room(ECHO.name) == room


def test_a_session_that_left_has_no_room():
    book = CreditBook()
    book.see(ECHO)
    slots = opened(book, offer(echo=0), 2)
    opened(book, offer(echo=0, more=0), 1)
    book.leave(slots)
    assert (book.room(ECHO.name), book.free, book.names) == (1, 1, {"echo", "more"})


def test_only_the_first_session_of_an_offer_is_new():
    book = CreditBook()
    assert [book.enter(offer(echo=0), 1)[1] for _ in range(2)] == [True, False]
