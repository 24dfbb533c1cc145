"""Take the pictures of the documentation: a server with the work of a shop, a browser, and docs/images. `make pictures`."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
IMAGES = ROOT / "docs" / "images"
HORAI = str(Path(sys.executable).with_name("horai"))
PATIENCE = 120.0


def main() -> None:
    """Start the server, fill it, let it work for a while, and take the pictures."""
    with tempfile.TemporaryDirectory(prefix="horai-pictures-") as place:
        Path(place).chmod(0o755)  # as root, PostgreSQL runs as another user
        command = [HORAI, "up", "--app", "picture_shop:app", "--port", "0", "--data-dir", f"{place}/data"]
        log = Path(place, "log")
        with log.open("w") as out:
            server = subprocess.Popen(command, cwd=TOOLS, stdout=out, stderr=subprocess.STDOUT)  # noqa: S603 — a command of ours
        try:
            base = address(server, log)
            limit_exports(base)
            os.environ["HORAI_DATA_DIR"] = f"{place}/data"
            asyncio.run(fill())
            take(base)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address of the server as soon as its worker is ready."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        said = log.read_text()
        if "Horai is ready: worker" in said:
            return next(word for word in said.split() if word.startswith("http://"))
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise SystemExit(f"error: the server is not ready\n{log.read_text()}")


def limit_exports(base: str) -> None:
    """Let two exports run at a time, so that the others wait."""
    command = [HORAI, "queues", "set", "exports", "--max-concurrency", "2", "--server", base]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 — a command of ours


async def fill() -> None:
    """Give the shop its work, and wait until most of it has ended."""
    sys.path.insert(0, str(TOOLS))
    import picture_shop  # noqa: PLC0415 — its application reads the directory of the database

    async with asyncio.timeout(PATIENCE):
        await picture_shop.fill()
    await picture_shop.app.close()


def take(base: str) -> None:
    """Run the project `pictures` of Vitest against the server."""
    environment = {**os.environ, "HORAI_URL": base, "HORAI_PICTURES": str(IMAGES)}
    command = [sys.executable, str(TOOLS / "console.py"), "run", "vitest", "run", "--project", "pictures"]
    subprocess.run(command, env=environment, check=True)  # noqa: S603 — a command of ours


if __name__ == "__main__":
    main()
