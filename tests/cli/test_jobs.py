"""`rota jobs`."""

import json
from collections.abc import Iterator
from contextlib import closing
from shlex import quote
from typing import Any

import pytest
from click.testing import CliRunner

from rota import Limit, Rota
from rota.cli.job_text import HEADINGS
from rota.cli.main import cli
from rota.model.job import JobFilter, JobId, Order, SessionInfo
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.url import shown as shown_url
from tests.cli.calling import answer, refused, rota
from tests.store.factories import (
    NOBODY,
    enqueue,
    error_json,
    in_state,
    one_of_each,
    running,
    settle,
    settlement,
    spec_of,
    states,
)

NASTY = "red \x1b[31m, turned \u202eround\u202c, bell \x07"
"""What a terminal would obey."""


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


@pytest.fixture
def jobs(store: Store) -> Iterator[dict[State, JobId]]:
    """A job in every state."""
    with closing(store.connect()) as connection:
        yield one_of_each(store, connection)


def discarded(store: Store, connection: Connection, message: str, **options: Any) -> JobId:
    """A job that was given up after its first attempt failed with this message."""
    session, [job] = running(store, connection, **options)
    error = error_json(1, "shop.Broken", message, f"Traceback:\n  line 7\nshop.Broken: {message}")
    settle(store, connection, session, settlement(job, Move.DISCARD, error=error))
    return job.id


def test_an_empty_list(url: str) -> None:
    """Without jobs a list has its headings, and JSON has an empty list."""
    result = rota("jobs", "list", url=url)
    assert result.exit_code == 0
    assert result.stdout.split() == [column.title for column in HEADINGS]
    assert answer("jobs", "list", url=url) == {"jobs": []}


@pytest.mark.parametrize("words", [("list",), ("retry", "--all-discarded")], ids=" ".join)
def test_a_queue_that_is_not_there(
    words: tuple[str, ...], url: str, store: Store, connection: Connection
) -> None:
    """A misspelt queue is an error, and not an empty answer alone; a queue without such jobs is none."""
    enqueue(store, connection, queue="mail")
    for options in ((), ("--json",)):
        result = rota("jobs", *words, "--queue", "mial", *options, url=url)
        refused(result, 1, "no queue named mial; did you mean mail? `rota queues list --url ")
        assert result.stdout
    other = ("--state", "running") if words == ("list",) else ()
    assert rota("jobs", *words, *other, "--queue", "mail", url=url).exit_code == 0


def test_a_task_that_is_not_there(url: str, store: Store, connection: Connection) -> None:
    """A misspelt task may be one whose jobs are gone: which one may be meant is a hint."""
    enqueue(store, connection, task="shop.send")
    for words in (("list",), ("retry", "--all-discarded")):
        result = rota("jobs", *words, "--task", "shop.sned", url=url)
        assert result.exit_code == 0
        assert "did you mean the task shop.send?" in result.stderr
    assert rota("jobs", "list", "--task", "pay", url=url).stderr == ""
    result = rota("jobs", "list", "--task", "shop.send", "--state", "running", url=url)
    assert result.stderr == ""


def test_a_list_in_a_pipe(url: str, jobs: dict[State, JobId]) -> None:
    """In a pipe there is a line per job, and tabs between its fields."""
    heading, *lines = rota("jobs", "list", url=url).stdout.splitlines()
    assert heading.split("\t")[0].strip() == "id"
    fields = [[field.strip() for field in line.split("\t")] for line in lines]
    assert {(int(row[0]), row[1]) for row in fields} == {
        (job, state.value) for state, job in jobs.items()
    }
    assert all(row[2:4] == ["default", "shop.send"] for row in fields)


def test_what_waits_without_an_end(url: str) -> None:
    """A job that waits for other jobs is not due in a hundred years; one with a delay is due."""
    with Rota(url) as app:

        @app.task(name="shop.pack")
        def pack() -> None: ...

        with app.flow("order") as flow:
            flow.add(pack, after=[flow.add(pack)])
        pack.using(delay=3600).enqueue()
    heading, *lines = rota("jobs", "list", "--state", "scheduled", url=url).stdout.splitlines()
    delayed, waiting = (line.split("\t")[-1] for line in lines)
    assert heading.split("\t")[-1] == "note"
    assert delayed.startswith("due 20")
    assert waiting == "waits for a signal or other jobs"
    [_, job] = answer("jobs", "list", "--state", "scheduled", url=url)["jobs"]
    assert job["scheduled_at"] is None
    assert "\n  due " not in rota("jobs", "show", job["id"], url=url).stdout


def test_filters(url: str, store: Store, connection: Connection, jobs: dict[State, JobId]) -> None:
    """A list shows what was asked for, the newest first."""
    found = answer("jobs", "list", "--state", "retryable", url=url)["jobs"]
    assert [job["id"] for job in found] == [jobs[State.RETRYABLE]]
    mail = enqueue(store, connection, 3, queue="mail", task="shop.other")
    for option, value in (("--queue", "mail"), ("--task", "shop.other")):
        found = answer("jobs", "list", option, value, url=url)["jobs"]
        assert [job["id"] for job in found] == mail[::-1]
    limited = rota("jobs", "list", "--queue", "mail", "--limit", "2", "--json", url=url)
    assert [job["id"] for job in json.loads(limited.stdout)["jobs"]] == mail[:0:-1]
    text = rota("jobs", "list", "--queue", "mail", "--limit", "2", url=url)
    assert "--limit" in text.stderr
    assert answer("jobs", "list", "--task", "nobody", url=url) == {"jobs": []}


def test_lists_hold_no_args(url: str, store: Store, connection: Connection) -> None:
    """Only `show` shows args."""
    [job] = enqueue(store, connection)
    for result in (rota("jobs", "list", url=url), rota("jobs", "list", "--json", url=url)):
        assert "number" not in result.output
    [shown] = answer("jobs", "show", job, url=url)["jobs"]
    assert shown["args"] == {"number": 0}


def test_show(url: str, store: Store, connection: Connection) -> None:
    """Everything about the job is shown, with the traceback of the failure."""
    job = discarded(store, connection, "no luck")
    result = rota("jobs", "show", job, url=url)
    assert result.exit_code == 0
    for text in (f"Job {job}: shop.send", "discarded", '"number": 0', "  line 7", "no luck"):
        assert text in result.stdout
    [shown] = answer("jobs", "show", job, url=url)["jobs"]
    assert (shown["state"], shown["attempt"], shown["max_attempts"]) == ("discarded", 1, 5)
    [error] = shown["errors"]
    assert (error["attempt"], error["exception"], error["message"]) == (1, "shop.Broken", "no luck")
    assert "line 7" in error["traceback"]


def test_why_a_job_does_not_run(url: str, store: Store, connection: Connection) -> None:
    """What keeps it, with the next step; nothing is said of a job that runs or has ended."""
    [job] = enqueue(store, connection, queue="my mail")
    connection.run(store.pause("my mail"))
    shown = rota("jobs", "show", job, url=url).stdout.splitlines()
    first = shown.index("  why       The queue my mail is paused.")
    assert (
        shown[first + 1]
        == f"            → rota queues resume 'my mail' --url {quote(shown_url(url))}"
    )
    assert shown[first + 2] == "            No worker is alive."
    connection.run(store.resume("my mail"))
    info = SessionInfo("host", 1, ("my mail",), 60.0, ("shop.send",))
    session = connection.run(store.open_session(info))
    assert "  why       Nothing holds it back" in rota("jobs", "show", job, url=url).stdout
    connection.run(store.claim(session, ["my mail"], 1))
    assert "why" not in rota("jobs", "show", job, url=url).stdout
    assert answer("jobs", "show", job, url=url)["jobs"][0]["why"] == []


def test_why_a_job_waits_for_others(url: str, store: Store, connection: Connection) -> None:
    """Its limit is full, by these jobs; a worker there is does not know its task."""
    limit = Limit(key="reports", running=1)
    with closing(Rota(url)) as app:
        report = app.task(name="report", limit=limit)(lambda: None)
        running, waiting = report.enqueue().id, report.enqueue().id
    info = SessionInfo("host", 1, ("default",), 60.0, ("report",))
    session = connection.run(store.open_session(info))
    connection.run(store.claim(session, ["default"], 5))
    [shown] = answer("jobs", "show", waiting, url=url)["jobs"]
    assert [(why["subject"], why["jobs"]) for why in shown["why"]] == [("limit", [running])]
    connection.run(store.know(session, ["other"]))
    text = rota("jobs", "show", waiting, url=url).stdout
    assert "  why       No worker of the queue knows the task report." in text
    assert f"Its limit reports is full: 1 of 1 running. (job {running})" in text


def test_why_jobs_of_a_flow_do_not_run(url: str, connection: Connection) -> None:
    """A node that waits for others says so; so does a job that waits for its time."""
    with closing(Rota(url)) as app:
        work = app.task(name="work")(lambda: None)
        with app.flow("order") as flow:
            flow.add(work, name="ship", after=[flow.add(work.using(delay=7200), name="pay")])
        pay, ship = (flow.handle.job(name).id for name in ("pay", "ship"))
        info = SessionInfo("host", 1, ("default",), 60.0, ("work",))
        connection.run(app.database.store.open_session(info))
    first, second = answer("jobs", "show", pay, ship, url=url)["jobs"]
    assert [why["subject"] for why in first["why"]] == ["time"]
    [why] = second["why"]
    number = flow.handle.id
    assert why["text"] == f"Its node ship of flow {number} (order) waits for other nodes."
    assert why["advice"] == f"rota flows show {number} --url {quote(shown_url(url))}"


@pytest.mark.parametrize(
    "args", ['{"a":"\\ud800"}', '{"a":' + "[" * 5000 + "]" * 5000 + "}"], ids=["half", "deep"]
)
def test_args_that_nobody_reads(url: str, store: Store, connection: Connection, args: str) -> None:
    """What other programs have stored is shown as it is."""
    [job] = connection.run(store.enqueue(Order(spec_of(), [args])))
    result = rota("jobs", "show", job, url=url)
    assert result.exit_code == 0, result.output
    assert args in result.stdout
    result = rota("jobs", "show", job, "--json", url=url)
    assert result.exit_code == 0, result.output
    assert f'"args":{args}' in result.stdout


def test_a_result_is_shown(url: str, store: Store, connection: Connection) -> None:
    """A result is JSON, like args."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.COMPLETE, result='{"total":[1,2]}'))
    [shown] = answer("jobs", "show", job.id, url=url)["jobs"]
    assert shown["result"] == {"total": [1, 2]}
    assert '"total"' in rota("jobs", "show", job.id, url=url).stdout


@pytest.mark.parametrize("terminal", [False, True])
def test_a_terminal_is_not_obeyed(
    url: str,
    store: Store,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    *,
    terminal: bool,
) -> None:
    """Control characters in errors are printed as escapes, in lists and details alike."""
    monkeypatch.setattr("rota.terminal.output.on_terminal", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "300")
    job = discarded(store, connection, NASTY)
    for result in (rota("jobs", "list", url=url), rota("jobs", "show", job, url=url)):
        assert result.exit_code == 0
        assert "\\x1b[31m" in result.stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(result.stdout)


def test_retry(url: str, store: Store, connection: Connection, jobs: dict[State, JobId]) -> None:
    """Waiting and finished jobs become available; a running job stays as it is."""
    result = rota("jobs", "retry", *jobs.values(), url=url)
    refused(result, 1, f"job {jobs[State.RUNNING]} is running")
    assert f"job {jobs[State.DISCARDED]} is available again" in result.stdout
    assert f"job {jobs[State.AVAILABLE]} is already available" in result.stdout
    del jobs[State.RUNNING]
    assert set(states(store, connection, list(jobs.values()))) == {State.AVAILABLE}


def test_retry_as_json(url: str, jobs: dict[State, JobId]) -> None:
    """JSON says what was retried and what was not."""
    asked = [jobs[State.COMPLETED], jobs[State.RUNNING], NOBODY]
    result = rota("jobs", "retry", *asked, "--json", url=url)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "retried": [jobs[State.COMPLETED]],
        "unchanged": {str(jobs[State.RUNNING]): "running"},
        "missing": [NOBODY],
    }


def test_retry_all_discarded(url: str, store: Store, connection: Connection) -> None:
    """The dead letters of a queue, of a task, or all of them become available."""
    first, second = (discarded(store, connection, "no luck") for _ in range(2))
    none = rota("jobs", "retry", "--all-discarded", "--task", "nobody", url=url)
    assert (none.exit_code, none.stdout) == (0, "there are no such jobs\n")
    assert answer("jobs", "retry", "--all-discarded", "--task", "shop.send", url=url) == {
        "retried": [first, second],
        "unchanged": {},
        "missing": [],
    }
    assert states(store, connection, [first, second]) == [State.AVAILABLE] * 2
    discarded(store, connection, "no luck", queue="mail")
    assert "1 job is available again" in rota("jobs", "retry", "--all-discarded", url=url).stdout


def test_cancel(url: str, store: Store, connection: Connection, jobs: dict[State, JobId]) -> None:
    """Waiting jobs end at once, running jobs are asked to stop, finished jobs are named."""
    result = rota("jobs", "cancel", *jobs.values(), url=url)
    assert result.exit_code == 1
    assert f"job {jobs[State.AVAILABLE]} is cancelled" in result.stdout
    assert f"job {jobs[State.RUNNING]} is running, and asked to stop" in result.stdout
    assert f"job {jobs[State.COMPLETED]} is already completed" in result.stderr
    assert f"job {jobs[State.DISCARDED]} is already discarded" in result.stderr
    waiting = [jobs[state] for state in (State.SCHEDULED, State.AVAILABLE, State.RETRYABLE)]
    assert states(store, connection, waiting) == [State.CANCELLED] * 3
    again = answer("jobs", "cancel", waiting[0], url=url)
    assert again == {"jobs": {str(waiting[0]): "cancelled"}, "missing": []}
    shown = rota("jobs", "list", "--state", "running", url=url).stdout
    assert "asked to stop" in shown


def test_delete(url: str, store: Store, connection: Connection, jobs: dict[State, JobId]) -> None:
    """All but running jobs can be deleted."""
    result = rota("jobs", "delete", *jobs.values(), url=url)
    refused(result, 1, f"job {jobs[State.RUNNING]} is running; cancel it first")
    assert len(result.stdout.splitlines()) == len(jobs) - 1
    assert [job.id for job in connection.run(store.get(list(jobs.values())))] == [
        jobs[State.RUNNING]
    ]


def test_delete_as_json(url: str, store: Store, connection: Connection) -> None:
    """JSON says what was deleted; asked for twice, a job is deleted once."""
    [job] = enqueue(store, connection)
    assert answer("jobs", "delete", job, job, url=url) == {
        "deleted": [job],
        "unchanged": {},
        "missing": [],
    }


@pytest.mark.parametrize("verb", ["show", "retry", "cancel", "delete"])
def test_an_unknown_job(url: str, store: Store, connection: Connection, verb: str) -> None:
    """An unknown id gives exit status 1, and the other jobs are done all the same."""
    built = in_state(store, connection, State.SCHEDULED)
    result = rota("jobs", verb, NOBODY, built.id, url=url)
    refused(result, 1, f"job {NOBODY} does not exist")
    assert str(built.id) in result.stdout


def test_a_table_on_a_terminal(
    url: str, jobs: dict[State, JobId], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal a list is a table, and an empty list a sentence."""
    monkeypatch.setattr("rota.terminal.output.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    shown = rota("jobs", "list", url=url).stdout
    assert "\t" not in shown
    assert str(jobs[State.AVAILABLE]) in shown
    nothing = rota("jobs", "list", "--queue", "nobody", url=url).stdout
    assert nothing == "There are no such jobs.\n"


def test_acting_on_all_that_match(url: str, store: Store, connection: Connection) -> None:
    """All jobs with what is asked for; a dry run only counts them."""
    wanted = enqueue(store, connection, 2, queue="mail")
    other = enqueue(store, connection, 2)
    for verb, done in (("cancel", "cancelled"), ("delete", "deleted")):
        told = rota("jobs", verb, "--queue", "mail", "--dry-run", url=url)
        assert (told.exit_code, told.stdout) == (0, f"2 jobs would be {done}\n")
    assert answer("jobs", "delete", "--task", "none", "--dry-run", url=url) == {
        "jobs": 0,
        "total": 4,
        "exact": True,
    }
    cancelled = answer("jobs", "cancel", "--queue", "mail", "--yes", url=url)
    assert cancelled == {"jobs": {str(job): "cancelled" for job in wanted}, "missing": []}
    assert (
        states(store, connection, [*wanted, *other])
        == [State.CANCELLED] * 2 + [State.AVAILABLE] * 2
    )
    again = rota("jobs", "retry", "--state", "cancelled", "--task", "shop.send", url=url)
    assert again.stdout == "2 jobs are available again\n"
    gone = rota("jobs", "delete", "--state", "available", "--yes", url=url)
    assert gone.stdout == "4 jobs are deleted\n"
    assert rota("jobs", "delete", "--queue", "mail", "--yes", url=url).stdout == (
        "there are no such jobs\n"
    )


def test_deleting_all_that_match_asks(
    url: str, store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal it needs --yes, and a no changes nothing."""
    enqueue(store, connection, 2)
    refused(rota("jobs", "delete", "--queue", "default", url=url), 2, "use --yes")
    monkeypatch.setattr("rota.cli.asking.can_ask", lambda: True)
    words = ["jobs", "delete", "--queue", "default", "--url", url]
    told = CliRunner().invoke(cli, words, input="n\n")
    assert told.exit_code == 1
    assert "Delete 2 jobs?" in told.output
    assert "nothing was deleted" in told.output
    assert len(connection.run(store.list_jobs(JobFilter()))) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "give either"),
        (("7", "--queue", "mail"), "give either"),
        (("7", "--dry-run"), "--dry-run needs"),
        (("--dry-run",), "give either"),
        (("--state", "asleep"), "asleep"),
        (("--state", "running"), "running jobs cannot be"),
        (("--arg", "x"), "name=value"),
    ],
)
def test_jobs_that_cannot_be_meant(url: str, given: tuple[str, ...], message: str) -> None:
    """Neither or both of ids and filters, and values that cannot be."""
    result = rota("jobs", "delete", *given, "--yes", url=url)
    assert result.exit_code == 2
    assert message in result.stderr
