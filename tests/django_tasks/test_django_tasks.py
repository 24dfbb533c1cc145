"""Django's task framework on Horai: a project, its worker by `manage.py horai_worker`, and calls from another process."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from terminal import clean_environment

from horai.db.pool import Platform

SETTINGS = """
SECRET_KEY = "test"
INSTALLED_APPS = ["horai.django", "shop"]
USE_TZ = True
DATABASES = {{"default": {database!r}}}
TASKS = {{"default": {{"BACKEND": "horai.django.backend.HoraiBackend", "QUEUES": ["default", "mail"], "OPTIONS": {options!r}}}}}
"""
TASKS = """
from horai.django.framework import base

task = base.task


@task(queue_name="mail", priority=10)
def greet(name: str, *, times: int = 1) -> str:
    return " ".join([f"hello {name}"] * times)


@task
async def double(number: int) -> int:
    return 2 * number


@task(takes_context=True)
def attempt_of(context) -> int:
    return context.attempt


@task
def fail() -> None:
    raise ValueError("no stock")
"""
MANAGE = """
import sys
from django.core.management import execute_from_command_line

execute_from_command_line(sys.argv)
"""
PREPARED = "import django; django.setup(); from shop.tasks import *; from django.db import transaction\n"


class Project:
    """A directory with a Django project."""

    def __init__(self, place: Path, url: str, options: dict[str, Any]) -> None:
        self.place = place
        address = sqlalchemy.make_url(url)
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": address.database,
            "USER": address.username,
            "HOST": address.query["host"],
            "PORT": address.query["port"],
        }
        (place / "shop").mkdir()
        (place / "shop" / "__init__.py").touch()
        (place / "shop" / "tasks.py").write_text(TASKS)
        (place / "manage.py").write_text(MANAGE)
        (place / "settings.py").write_text(SETTINGS.format(database=database, options=options))
        self.shares_the_database = "database" in options
        self._environment = clean_environment() | {"DJANGO_SETTINGS_MODULE": "settings"}
        if not self.shares_the_database:
            self._environment["HORAI_DATABASE_URL"] = url

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words], cwd=self.place, env=self._environment, stdout=subprocess.PIPE, text=True
        )

    def python(self, code: str) -> Any:
        """Run code in a process with the tasks, and return the JSON that it prints."""
        done = subprocess.run(
            [sys.executable, "-c", f"import json\n{PREPARED}{code}"],
            cwd=self.place,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(params=[{"name": "shop", "retry": 0}, {"name": "shop", "retry": 0, "database": "default"}])
def project(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Project:
    """Horai by its own URL, and in the database of the project."""
    return Project(tmp_path, url, request.param)


@pytest.fixture
def worker(project: Project) -> Generator[str]:
    """The line with which the worker says that it is ready."""
    process = project.start("manage.py", "horai_worker", "--name", "django-1")
    assert process.stdout is not None
    try:
        yield process.stdout.readline()
    finally:
        process.terminate()
        code = process.wait(30)
        process.stdout.close()
    assert code == 0


WAIT = """
def end(result):
    try:
        result.task.get_backend().handle(result).result(timeout=30)
    except Exception as error:
        assert type(error).__name__ == "InstanceFailed", error
    result.refresh()
    return result
"""


def test_tasks_run_in_a_worker_and_their_results_are_read_in_another_process(project: Project, worker: str) -> None:
    assert (
        worker
        == "Horai is ready: worker django-1 (shop.tasks.greet, shop.tasks.double, shop.tasks.attempt_of, shop.tasks.fail)\n"
    )
    found = project.python(
        WAIT
        + """
first = greet.enqueue("Ann", times=2)
assert first.status == "READY" and first.args == ["Ann"] and first.kwargs == {"times": 2}
ended = [end(first), end(double.enqueue(21)), end(attempt_of.enqueue()), end(fail.enqueue())]
again = greet.get_result(first.id)
print(json.dumps({
    "values": [each.return_value for each in ended[:3]],
    "statuses": [str(each.status) for each in ended],
    "error": [ended[3].errors[0].exception_class.__name__, ended[3].errors[0].traceback.partition("\\n")[0], "shop/tasks.py" in ended[3].errors[0].traceback],
    "again": [again.return_value, again.args, again.kwargs, again.attempts],
}))
"""
    )
    assert found == {
        "values": ["hello Ann hello Ann", 42, 1],
        "statuses": ["SUCCESSFUL", "SUCCESSFUL", "SUCCESSFUL", "FAILED"],
        "error": ["ValueError", "ValueError: no stock", True],
        "again": ["hello Ann hello Ann", ["Ann"], {"times": 2}, 1],
    }


async def test_a_task_is_a_job_with_its_queue_and_priority(project: Project, connection: Platform) -> None:
    project.python("greet.enqueue('Ann'); double.enqueue(1); print('null')")

    found = await connection.fetch(
        """select job, queue, priority from (
               select name as job, coalesce(definition->>'queue', 'default') as queue, definition->>'priority' as priority
               from horai.job) known order by job"""
    )
    assert [tuple(row) for row in found] == [
        ("shop.tasks.double", "default", None),
        ("shop.tasks.greet", "mail", "high"),
    ]


async def test_a_call_in_a_transaction_that_is_rolled_back_is_stored_only_in_another_database(
    project: Project, connection: Platform
) -> None:
    project.python(
        """
double.enqueue(1)
try:
    with transaction.atomic():
        double.enqueue(2)
        raise KeyError
except KeyError:
    print("null")
"""
    )
    stored = [
        row["payload"] for row in await connection.fetch("select payload::text from horai.instance_live order by id")
    ]
    first, second = '{"args":[1],"kwargs":{}}', '{"args":[2],"kwargs":{}}'
    assert stored == ([first] if project.shares_the_database else [first, second])


def test_run_after_is_the_time_of_the_instance(project: Project) -> None:
    waiting = project.python(
        """
from datetime import datetime, UTC
later = double.using(run_after=datetime(2999, 1, 1, tzinfo=UTC)).enqueue(1)
later.refresh()
handle = later.task.get_backend().tasks.read(later.id)
print(json.dumps([str(later.status), handle.fire_time.isoformat()]))
"""
    )
    assert waiting == ["READY", "2999-01-01T00:00:00+00:00"]


def test_wrong_uses_are_refused_with_the_reason(project: Project) -> None:
    said = project.python(
        """
from horai.django.framework import exceptions, InvalidTask
found = []
for wrong in (lambda: greet.using(queue_name="default"), lambda: greet.using(priority=-5), lambda: greet.get_result("999999999")):
    try:
        wrong()
    except (InvalidTask, exceptions.TaskResultDoesNotExist) as error:
        found.append([type(error).__name__, str(error)])
print(json.dumps(found))
"""
    )
    assert [text for _, text in said[:2]] == [
        "shop.tasks.greet is declared with queue_name='mail' and priority=10. Horai takes both from the decorator: declare a"
        " second task for another queue or priority."
    ] * 2
    assert said[2] == ["TaskResultDoesNotExist", "999999999"]


def test_an_unknown_option_of_the_backend_is_refused(tmp_path: Path, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARED],
        cwd=(wrong := Project(tmp_path, url, {"nme": "shop"})).place,
        env=wrong._environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "TASKS['default']: unknown option 'nme'." in done.stderr
