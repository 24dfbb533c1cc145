"""The output of `horai check`."""

import json
from dataclasses import asdict
from itertools import chain

import typer

from horai.cli.commands.check_survey import Findings, WorkflowFound
from horai.cli.errors import CommandFailed
from horai.cli.show import console, say, table
from horai.operations.declared_owner import QUEUE_WORD, DeclaredChanges

COLUMNS = ("JOB", "SCHEDULE", "QUEUE", "FUNCTION", "PAYLOAD")


def report(findings: Findings, *, as_json: bool) -> None:
    """Print the findings to stdout. Exit with 1 if there are problems."""
    if as_json:
        print(json.dumps(_document(findings)))
        if findings.problems:
            raise typer.Exit(1)
        return
    _print_jobs(findings)
    for warning in findings.warnings:
        say(f"warning: {warning}")
    if findings.problems:
        first, *others = findings.problems
        raise CommandFailed(first, findings.hint, others)
    _say_what_was_compared(findings)


def _document(findings: Findings) -> dict[str, object]:
    deploy = None if findings.deploy is None else {fate: list(names) for fate, names in _fates(findings.deploy).items()}
    return {
        "application": findings.application,
        "jobs": [asdict(job) for job in findings.jobs],
        "workflows": [asdict(workflow) for workflow in findings.workflows],
        "queues": [asdict(queue) for queue in findings.queues],
        "problems": list(findings.problems),
        "warnings": list(findings.warnings),
        "migrations": list(findings.migrations),
        "deploy": deploy,
    }


def _fates(deploy: DeclaredChanges) -> dict[str, tuple[str, ...]]:
    return {
        "create": deploy.created,
        "change": deploy.changed,
        "leave": deploy.unchanged,
        "notInCode": deploy.removed,
    }


def _print_jobs(findings: Findings) -> None:
    rows = [(job.name, job.schedule, job.queue, job.function, job.payload) for job in findings.jobs]
    rows += [(each.name, each.schedule, each.queue, _nodes(each), "any") for each in findings.workflows]
    rows += [(QUEUE_WORD + each.name, "", each.name, each.limits, "") for each in findings.queues]
    if not rows:
        return
    if findings.deploy is None:
        console().print(table(COLUMNS, rows))
        return
    fate_of = {name: fate for fate, names in _fates(findings.deploy).items() for name in names}
    judged = ((*row, fate_of[row[0]]) for row in rows)
    gone = ((name, *("" for _ in COLUMNS[1:]), "not in the code") for name in findings.deploy.removed)
    console().print(table((*COLUMNS, "DEPLOY"), chain(judged, gone)))


def _nodes(workflow: WorkflowFound) -> str:
    count = len(workflow.nodes)
    return f"workflow of {count} node{'' if count == 1 else 's'}"


def _say_what_was_compared(findings: Findings) -> None:
    if findings.migrations:
        say(f"The database lacks {len(findings.migrations)} migrations: the deploy applies them.")
    elif findings.deploy is None:
        say("Not compared with a database: none is named, and no `horai up` is running here.")
    else:
        if findings.deploy.removed_jobs:
            say("Jobs that are not in the code stay as they are: horai jobs delete removes them.")
        if findings.deploy.removed_queues:
            say("Queues that are not in the code keep their limits: horai queues set removes them.")
