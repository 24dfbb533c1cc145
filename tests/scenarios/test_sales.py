"""The example of a data pipeline: its story, told by a running system."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import HoraiProcess

from horai.embedded import url_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def horai(short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HoraiProcess]:
    app = ("--app", "examples.sales.jobs:app")
    process = HoraiProcess(short_place / tmp_path.name[-24:], *app, PYTHONPATH=f"{ROOT}:{ROOT / 'src'}").start()
    monkeypatch.setenv("HORAI_DATABASE_URL", url_of(process.data_dir))
    monkeypatch.syspath_prepend(ROOT)
    yield process
    process.stop()


@pytest.mark.usefixtures("horai")
async def test_a_week_of_sales_is_loaded_once_with_a_map_a_backfill_and_a_rerun() -> None:
    told: list[str] = []

    async with importlib.import_module("examples.sales.jobs").app:
        await importlib.import_module("examples.sales.story").tell(told.append)

    assert [line.partition(": ")[2] for line in told[:-1] if ": " in line] == [
        "0 reports of 0 cents, written 0 times.",
        "3 of 3 files, 0 failed.",
        "1 reports of 450 cents, written 1 times.",
        "6 reports of 2700 cents, written 7 times.",
        "7 reports of 3150 cents, written 8 times.",
    ]
    assert told[-1] == "4. The ledger has 7 days: it was started by 8 updates of sales.day."
    assert told[3] == "2. A backfill of the week ran 7 days, and 1 of them did not end."
    assert told[5:7] == [
        "3. load_file of one day is dead, and the shop sends its file again.",
        "   The run ends with SUCCESS.",
    ]
