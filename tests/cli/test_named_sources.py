"""`--source NAME=URL` and `HORAI_SOURCE_<NAME>`: the databases that reconcilers may read."""

from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from harness import Client, NodeProcess
from terminal import Terminal

from horai.cli.commands.up_processes import further_nodes
from horai.cli.errors import BadUsage
from horai.cli.named_urls import SOURCES
from horai.node import NodeSettings

QUERY = "select key, execute_time from article where key > $1 order by key limit $2"
SECRET = "postgresql://reader:hunter2@db.example/shop"


def test_S2_flags_and_variables_name_sources_and_a_flag_wins(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{SECRET}\n")
    environ = {
        "HORAI_SOURCE_SHOP": "postgresql://old/shop",
        "HORAI_SOURCE_NEWS_DESK": "postgresql+asyncpg://news/desk",
        "HORAI_SOURCE_FILED_FILE": str(tmp_path / "url"),
        "HORAI_SOURCE_EMPTY": "",
        "DATABASE_URL": SECRET,
    }
    assert SOURCES.chosen(["shop=postgresql://new/shop?a=b"], environ) == {
        "shop": "postgresql://new/shop?a=b",
        "news_desk": "postgresql://news/desk",
        "filed": SECRET,
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["shop"], "must begin with postgresql://"),
        (["shop=mysql://reader:hunter2@db/shop"], "must begin with postgresql://"),
        ([f"Shop={SECRET}"], "NAME=URL"),
        ([f"={SECRET}"], "NAME=URL"),
        ([f"a_file={SECRET}"], "NAME=URL"),
        ([SECRET], "NAME=URL"),
        ([f"shop={SECRET}", f"shop={SECRET}"], "given twice"),
    ],
)
def test_S2_a_source_that_cannot_be_one_is_refused_without_its_password(
    horai: Terminal, given: list[str], told: str
) -> None:
    flags = [word for each in given for word in ("--source", each)]
    refused = horai("node", "--database-url", "postgresql://127.0.0.1:1/x", *flags)
    assert refused.code == 2
    assert told in " ".join(refused.err.replace("│", " ").split())
    assert "hunter2" not in refused.err


def test_S2_a_variable_that_cannot_be_a_source_is_named_without_its_value() -> None:
    with pytest.raises(BadUsage, match="HORAI_SOURCE_SHOP: the URL of shop must begin") as refused:
        SOURCES.chosen((), {"HORAI_SOURCE_SHOP": "mysql://reader:hunter2@db/shop"})
    assert "hunter2" not in str(refused.value)


def test_S2_further_nodes_get_the_sources_by_their_environment_not_by_their_arguments() -> None:
    settings = NodeSettings(Path("/nonexistent"), sources={"shop": SECRET})
    (command,) = further_nodes(settings, 1)
    assert command.environment == {"HORAI_SOURCE_SHOP": SECRET}
    assert "hunter2" not in " ".join(command.arguments)
    assert "hunter2" not in repr(settings)


async def test_S2_a_node_reads_the_source_it_was_given_by_name(url: str, short_place: Path) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("create table article as select 'a:1' as key, '2999-01-01Z'::timestamptz as execute_time")
    await connection.close()
    node = NodeProcess(short_place / "named", url, "--source", f"shop={url}").start()
    try:
        async with aiohttp.ClientSession() as session:
            api = Client(node.base, session)
            job = {"name": "publish", "target": {"type": "http", "url": f"{node.base}/healthz"}}
            assert (await api("POST", "/api/v1/jobs", job)).status == 201
            body: dict[str, Any] = {"name": "articles", "job": "publish"}
            source = {"type": "sql", "query": QUERY, "source": "shop"}
            made = await api("POST", "/api/v1/reconcilers", {**body, "source": source})
            assert made.status == 201, made.json
            run = await api("POST", "/api/v1/reconcilers/articles/run", Idempotency_Key="one")
            ended = await api.until_state(run.json["instance"]["id"], "SUCCESS", "DEAD")
            assert (ended["state"], ended["result"]["created"]) == ("SUCCESS", 1)
    finally:
        node.stop()
