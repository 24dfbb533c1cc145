"""Options of a declaration: one that does not exist is refused where it is written."""

from typing import Any

import pytest

from horai import Horai, Node, Refresh, Retry
from horai.core.errors import Invalid


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("crn", "Did you mean 'cron'?"),
        ("time_zone", "Did you mean 'timezone'?"),
        ("rate_limit", 'app.queue("mail", rate="10/s")'),
        ("max_concurrency", 'app.queue("mail", max_concurrency=5)'),
        ("max_retries", "retry=5"),
        ("colour", "Known: "),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_one_that_was_meant(option: str, hint: str) -> None:
    app: Any = Horai("shop")

    def wanted() -> list[Any]:
        return []

    publish = app.job(name="publish")(lambda: None)
    for declare in (
        lambda: app.job(**{option: 1})(wanted),
        lambda: app.workflow("nightly", [Node("publish")], **{option: 1}),
        lambda: app.reconcile(job=publish, **{option: 1})(wanted),
    ):
        with pytest.raises(TypeError, match=f"has no option '{option}'") as refused:
            declare()
        assert hint in str(refused.value)
    assert set(app.jobs) == {"publish"}


@pytest.mark.parametrize(
    ("kind", "given"), [(Retry, {"maximum": 3}), (Refresh, {"window": "1d", "windw": "1d"}), (Horai, {"url": "x"})]
)
def test_a_parameter_that_does_not_exist_is_refused(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        kind(**given)


@pytest.mark.parametrize(("retry", "most"), [(3, 3), (0, 0), (Retry(max=4), 4)])
def test_a_number_of_retries_is_a_policy(retry: Any, most: int) -> None:
    app = Horai("shop")
    job = app.job(name="publish", retry=retry)(lambda: None)

    assert job.declaration.document["retry"] == {"maxRetry": most}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("retry", "3", "retry: must be a whole number or a Retry, not str"),
        ("retry", True, "retry: must be a whole number or a Retry, not bool"),
        ("refresh", "10d", "refresh: must be a Refresh, not str"),
        ("dst", "skip", "dst: must be a mapping, not str"),
    ],
)
def test_a_value_of_another_type_is_refused_in_plain_words(option: str, value: Any, words: str) -> None:
    app: Any = Horai("shop")

    with pytest.raises(Invalid, match=words):
        app.job(name="publish", **{option: value})(lambda: None)
