"""Workers of these tests find their database by the environment, and notice lost Ray nodes within seconds."""

import pytest
from ray_cluster import QUICK


@pytest.fixture
def on_ray(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORAI_DATABASE_URL", url)
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
