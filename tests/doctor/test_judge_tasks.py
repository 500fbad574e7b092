"""Findings about jobs of tasks that no worker knows."""

from typing import Any

import pytest

from rota.doctor.finding import Severity
from rota.store.health import TaskFacts
from tests.doctor import facts as given

OK, NOTE, WARNING, CRITICAL = Severity


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({}, WARNING),
        ({"oldest": 29.0}, NOTE),
        ({"oldest": 601.0}, CRITICAL),
        ({"knowing": (8,)}, WARNING),
        ({"knowing": (7,)}, OK),
        ({"queue": "video", "knowing": (7,)}, WARNING),
    ],
)
def test_tasks_that_no_worker_knows(changes: dict[str, Any], severity: Severity) -> None:
    """Jobs wait in vain where no living worker of their queue knows their task."""
    passed: dict[str, Any] = {"queue": "mail", "task": "shop.new", "jobs": 3, "oldest": 31.0}
    passed |= changes
    silent = given.session(id=8, silent=16.0, timeout=15.0, leased=0)
    work = given.work(sessions=(given.session(id=7), silent), passed_on=(TaskFacts(**passed),))
    found = [one for one in given.wrong(given.postgres(work=work)) if one.subject == "tasks"]
    assert [one.severity for one in found] == ([] if severity is OK else [severity])
    for one in found:
        assert one.title == f"No worker of queue {passed['queue']} knows the task shop.new"
        assert one.detail.startswith("3 jobs wait; the first was enqueued ")
        assert one.advice == f"rota worker MODULE:APP --queue {passed['queue']}"


def test_more_jobs_than_are_counted() -> None:
    """The number is the least that it can be."""
    facts = TaskFacts("mail", "shop.new", 1000, 31.0)
    [found] = given.wrong(given.postgres(work=given.work(passed_on=(facts,))))
    assert found.detail.startswith("At least 1,000 jobs wait;")


def test_a_queue_is_not_behind_for_want_of_a_task() -> None:
    """What waits for a worker that knows its task says nothing of those that are there."""
    facts = TaskFacts("mail", "shop.new", 3, 400.0)
    lane = given.lane(task="shop.new", oldest=400.0)
    [found] = given.wrong(given.postgres(work=given.work(lanes=(lane,), passed_on=(facts,))))
    assert found.subject == "tasks"
    [found] = given.wrong(given.postgres(work=given.work(lanes=(lane,))))
    assert found.title.startswith("Queue mail is behind")


def test_unknown_tasks_without_workers() -> None:
    """Without a worker that is what is wrong, and nothing is said of tasks."""
    facts = TaskFacts("mail", "shop.new", 3, 400.0)
    found = given.wrong(given.postgres(work=given.work(sessions=(), passed_on=(facts,))))
    assert [one.subject for one in found] == ["workers"]
