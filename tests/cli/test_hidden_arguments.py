"""Neither `ps`, nor the log of the server, nor the log of its database shows a secret."""

from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import asyncpg
from harness import Client, HoraiProcess, NodeProcess, start_interpreter

from horai.cli.arguments import hide_passwords
from horai.embedded import url_of

CANARY = "hunter2canary"


def test_S6_a_password_on_the_command_line_is_not_in_the_list_of_processes(url: str, short_place: Path) -> None:
    secret = f"{url}&{urlencode({'password': CANARY})}"
    source = f"shop=postgresql://reader:{CANARY}@db.example/shop"
    broker = f"main=nats://sender:{CANARY}@nats.example:4222"
    node = NodeProcess(short_place / "hidden", "", "--database-url", secret, "--source", source, "--broker", broker)
    node.launch = start_interpreter
    node.start()
    try:
        shown = Path(f"/proc/{node.pid}/cmdline").read_bytes()
    finally:
        node.stop()
    assert CANARY.encode() not in shown
    assert b"--database-url" in shown
    assert b"postgresql://reader:*************@db.example/shop" in shown
    assert b"nats://sender:*************@nats.example:4222" in shown
    assert CANARY not in node.log.read_text()


def test_S6_arguments_without_a_password_are_left_as_they_are() -> None:
    before = Path("/proc/self/cmdline").read_bytes()
    assert hide_passwords()
    assert Path("/proc/self/cmdline").read_bytes() == before


async def test_S6_no_secret_is_in_the_log_of_the_server_or_of_its_database(short_place: Path) -> None:
    server = HoraiProcess(short_place / "quiet", "--source", f"shop=postgresql://u:{CANARY}@127.0.0.1:1/x").start()
    try:
        async with aiohttp.ClientSession() as session:
            api = Client(server.base, session)
            target = {"type": "http", "url": f"http://127.0.0.1:9/x?t={CANARY}", "headers": {"Authorization": CANARY}}
            retry = {"maxRetry": 0}
            job = {"name": "quiet", "target": target, "retry": retry, "payload": {"secret": CANARY}}
            assert (await api("POST", "/api/v1/jobs", job)).status == 201
            assert (await api("POST", "/api/v1/jobs", job)).status == 409
            query = "select key, execute_time from article where key > $1 order by key limit $2"
            source = {"type": "sql", "query": query, "source": "shop"}
            await api("POST", "/api/v1/reconcilers", {"name": "desk", "job": "quiet", "source": source})
            for path in ("jobs/quiet/trigger", "reconcilers/desk/run"):
                run = await api("POST", f"/api/v1/{path}", Idempotency_Key=path)
                await api.until_state(run.json["instance"]["id"], "DEAD", "FAIL", within=30)
        connection = await asyncpg.connect(url_of(server.data_dir))
        await connection.fetch("select pg_sleep(1.1), $1::text", CANARY)
        await connection.close()
    finally:
        server.stop()
    logs = [server.log, *server.data_dir.rglob("*.log")]
    said = {log: log.read_text() for log in logs}
    assert "pg_sleep" in "".join(said.values()), "slow statements are logged"
    assert [log for log, text in said.items() if CANARY in text] == []
