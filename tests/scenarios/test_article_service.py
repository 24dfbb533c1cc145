"""Seeds 000 and 001 by a service that uses Horai over HTTP alone: Horai decides when to try, the service what happens."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from newsroom import AUDIT, FAR, MOMENT, PUBLISH, House, Newsroom, visiting

WATCH = """
create table if not exists writer (application text, changed text);
create or replace function note_writer() returns trigger language plpgsql as $$
begin
    insert into writer values (current_setting('application_name'), tg_table_name);
    return null;
end $$;
create or replace trigger watch after insert or update or delete on article execute function note_writer();
create or replace trigger watch after insert or update or delete on delivery execute function note_writer();
"""


@pytest.fixture(scope="module")
def house(module_place: Path) -> Iterator[House]:
    made = House(module_place)
    made.open()
    yield made
    made.close()


async def test_A1_horai_schedules_audit_and_publish_and_never_touches_the_tables_of_the_service(house: House) -> None:
    watcher = await asyncpg.connect(house.articles_url, server_settings={"application_name": "watcher"})
    try:
        await watcher.execute(WATCH)
        async with visiting(house) as newsroom:
            article = await newsroom.audited(MOMENT)
            await newsroom.until(article, "PUBLISHED")
            withdrawn = await newsroom.audited()
            await newsroom.articles("POST", f"/articles/{withdrawn}/withdraw")

            assert [i["state"] for i in await newsroom.instances(article, AUDIT)] == ["SUCCESS"]
            assert [i["state"] for i in await newsroom.until_final(article)] == ["SUCCESS"]
            assert [i["state"] for i in await newsroom.until_final(withdrawn)] == ["CANCELLED"]
        writers = await watcher.fetch("select distinct application, changed from writer order by changed")
        assert [tuple(row) for row in writers] == [("article service", "article"), ("article service", "delivery")]
        connected = await watcher.fetch(
            "select datname, application_name from pg_stat_activity where datname is not null"
        )
        homes = {(row["datname"], row["application_name"].partition(" ")[0]) for row in connected}
        assert {("articles", "article"), ("horai", "horai")} <= homes
        assert not {("articles", "horai"), ("horai", "article")} & homes, "each has its own database"
    finally:
        await watcher.close()


async def test_A14_old_and_new_both_execute_and_one_of_them_takes_effect(house: House) -> None:
    """The author moves the time while the call is under way. Both calls are inside the service at once."""
    async with visiting(house) as newsroom:
        await newsroom.hold_press(True)
        article = await newsroom.audited(MOMENT)
        await newsroom.until_called(article, begun=1, ended=0)
        await newsroom.move(article, MOMENT)
        await newsroom.until_called(article, begun=2, ended=0)
        await newsroom.hold_press(False)
        old_call, new_call = await newsroom.until_called(article, begun=2, ended=2)

        assert (await newsroom.read(article))["status"] == "PUBLISHED"
        assert [old_call["effect"], new_call["effect"]] == ["NONE", "PUBLISHED"]
        assert old_call["unit"] == new_call["unit"] == f"default:{PUBLISH}:article:{article}"
        assert old_call["idempotency_key"] != new_call["idempotency_key"]
        assert old_call["fence"] < new_call["fence"]
        old, new = await newsroom.until_final(article)
        assert (old["state"], old["reason"]) == ("CANCELLED", "SUPERSEDED")
        assert (new["state"], new["supersedes"]) == ("SUCCESS", old["id"])
        assert {i["idempotencyKey"] for i in (old, new)} == {c["idempotency_key"] for c in (old_call, new_call)}


async def test_A14_a_change_that_comes_after_the_effect_is_tried_and_changes_nothing(house: House) -> None:
    """As an event that was long on its way: Horai is told of a publish time of an article that is out already."""
    async with visiting(house) as newsroom:
        article = await newsroom.audited(MOMENT)
        await newsroom.until(article, "PUBLISHED")
        assert [i["state"] for i in await newsroom.until_final(article)] == ["SUCCESS"]
        published = await newsroom.read(article)
        path = f"/api/v1/jobs/{PUBLISH}/instances/article:{article}"
        late = {"payload": {"articleId": article, "version": published["version"]}, "again": True}
        assert (await newsroom.horai("PUT", path, late)).json["decision"] == "INSERTED"
        calls = await newsroom.until_called(article, begun=2, ended=2)

        assert [call["effect"] for call in calls] == ["PUBLISHED", "NONE"]
        assert len({call["idempotency_key"] for call in calls}) == 2
        assert await newsroom.read(article) == published


async def test_A15_without_horai_the_business_goes_on_and_its_last_word_is_what_horai_tries(house: House) -> None:
    async with visiting(house) as newsroom:
        article = await newsroom.audited()
        house.horai.kill()
        moved = await newsroom.move(article, 2 * FAR)
        wanted = datetime.fromisoformat((await newsroom.move(article, MOMENT))["publish_at"])

        assert (moved["status"], moved["scheduled"]) == ("AUDIT_SUCCESS", False)
        house.horai.start()
        await newsroom.until(article, "PUBLISHED")
        assert datetime.now(UTC) >= wanted
        assert [call["effect"] for call in await newsroom.calls(article)] == ["PUBLISHED"]
        (only,) = await newsroom.until_final(article)
        assert only["version"] == (await newsroom.read(article))["version"] - 1, "of three times, the last one"


async def test_A15_an_article_that_is_withdrawn_during_the_call_is_not_published(house: House) -> None:
    async with visiting(house) as newsroom:
        await newsroom.hold_press(True)
        article = await newsroom.audited(MOMENT)
        await newsroom.until_called(article, begun=1, ended=0)
        withdrawn = (await newsroom.articles("POST", f"/articles/{article}/withdraw")).json
        await newsroom.hold_press(False)
        (call,) = await newsroom.until_called(article, begun=1, ended=1)

        assert (withdrawn["status"], call["effect"]) == ("WITHDRAWN", "NONE")
        assert (await newsroom.read(article))["status"] == "WITHDRAWN"
        (only,) = await newsroom.until_final(article)
        assert (only["state"], only["reason"]) == ("CANCELLED", "USER")


async def test_B14_a_second_call_finds_nothing_pending_and_stops_there(house: House) -> None:
    async with visiting(house) as newsroom:
        article = await newsroom.audited()
        path = f"/api/v1/jobs/{AUDIT}/instances/article:{article}"
        again = {"payload": {"articleId": article, "version": 1}, "again": True}
        instance = (await newsroom.horai("PUT", path, again)).json["instance"]
        done = await newsroom.horai.until_state(instance["id"], "SUCCESS")

        assert done["result"] == {"effect": "NONE", "status": "AUDIT_SUCCESS"}
        assert [call["effect"] for call in await newsroom.calls(article, AUDIT)] == ["AUDIT_SUCCESS", "NONE"]


async def test_B14_an_attempt_that_timed_out_and_its_retry_are_one_effect(house: House) -> None:
    """The caller has given up, the callee has not: both attempts are inside when the press runs again."""
    async with visiting(house) as newsroom:
        await newsroom.horai("PATCH", f"/api/v1/jobs/{PUBLISH}", {"timeout": "500ms"})
        try:
            await newsroom.hold_press(True)
            article = await newsroom.audited(4 * MOMENT)
            await newsroom.until_called(article, begun=2, ended=0)
            await newsroom.hold_press(False)
            first, second = (await newsroom.until_called(article, begun=2, ended=2))[:2]

            assert first["idempotency_key"] == second["idempotency_key"]
            assert (first["fence"], second["fence"]) == (1, 2)
            (only,) = await newsroom.until_final(article)
            assert only["state"] == "SUCCESS"
            effects = [call["effect"] for call in await newsroom.calls(article)]
            assert effects.count("PUBLISHED") == 1
            assert (await newsroom.read(article))["status"] == "PUBLISHED"
        finally:
            await newsroom.horai("PATCH", f"/api/v1/jobs/{PUBLISH}", {"timeout": "5s"})


LEGAL = {
    "DRAFT": {"submit", "move"},
    "AUDITING": {"withdraw", "move"},
    "AUDIT_FAILED": {"submit", "move"},
    "AUDIT_SUCCESS": {"withdraw", "move"},
    "PUBLISHED": set[str](),
    "WITHDRAWN": set[str](),
}


async def article_in(newsroom: Newsroom, status: str) -> int:
    """An article that stands there."""
    match status:
        case "DRAFT":
            return await newsroom.written()
        case "AUDITING":
            return await newsroom.submitted(FAR)
        case "AUDIT_FAILED":
            article = await newsroom.submitted(FAR, "It is forbidden to freeze.")
        case "PUBLISHED":
            article = await newsroom.submitted(MOMENT)
        case _:
            article = await newsroom.audited()
    if status == "WITHDRAWN":
        await newsroom.articles("POST", f"/articles/{article}/withdraw")
    await newsroom.until(article, status)
    return article


@pytest.mark.parametrize("status", LEGAL)
async def test_B15_moves_that_the_state_machine_does_not_know_are_refused(house: House, status: str) -> None:
    async with visiting(house) as newsroom:
        if status == "AUDITING":
            await newsroom.horai("POST", f"/api/v1/jobs/{AUDIT}/pause")
        try:
            for action in ("submit", "withdraw", "move"):
                article = await article_in(newsroom, status)
                before = await newsroom.read(article)
                assert before["status"] == status
                if action == "move":
                    at = {"publish_at": datetime.now(UTC).isoformat()}
                    answer = await newsroom.articles("PUT", f"/articles/{article}/publish-time", at)
                else:
                    answer = await newsroom.articles("POST", f"/articles/{article}/{action}")

                assert answer.status == (200 if action in LEGAL[status] else 409), (status, action)
                if answer.status == 409:
                    assert answer.json == {"detail": f"Article {article} is {status}."}
                    after = await newsroom.read(article)
                    assert {**after, "told": None} == {**before, "told": None}, (
                        "what Horai was told catches up by itself"
                    )
        finally:
            await newsroom.horai("POST", f"/api/v1/jobs/{AUDIT}/resume")


async def test_a_call_without_a_valid_signature_is_refused(house: House) -> None:
    async with visiting(house) as newsroom:
        article = await newsroom.audited()
        body = b'{"payload": {"articleId": %d, "version": 3}}' % article
        now = str(int(datetime.now(UTC).timestamp()))
        named = {"Idempotency_Key": "1:1:1", "Horai_Unit": f"default:{PUBLISH}:article:{article}"}
        forged = named | {"Horai_Attempt": "1", "Horai_Fence": "1", "webhook_id": "1:1:1", "webhook_timestamp": now}
        for headers in ({}, forged, forged | {"webhook_signature": "v1,AAAA"}):
            assert (await newsroom.articles.raw("POST", "/horai/publish", body, **headers)).status == 401

        assert await newsroom.calls(article) == []
        assert (await newsroom.read(article))["status"] == "AUDIT_SUCCESS"
