"""How SQLite executes the statements: by which index, and without sorting what is long."""

import re
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from typing import Any

import pytest

from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.operation import statement
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import DUE, claim, enqueue, open_session, settle, settlement

PACKAGE = "rota.store.sqlite"
NAMES = sorted(
    f"{folder.name}/{file.name.removesuffix('.sql')}"
    for folder in (files(PACKAGE) / "sql").iterdir()
    for file in folder.iterdir()
)

PARAMS: dict[str, Any] = {
    "after": 0,
    "args": "[]",
    "before": 0,
    "but": "[]",
    "limits": "[]",
    "seconds": 1.0,
    "sessions": None,
    "aside": "[1]",
    "at": None,
    "cancelled": None,
    "cap": None,
    "characters": 1000,
    "chunks": "[[1,2],[3]]",
    "completed": None,
    "concurrency": None,
    "declaration": None,
    "expires": None,
    "only": None,
    "options": None,
    "delay": None,
    "discarded": None,
    "due": None,
    "entries": "[1]",
    "entry": 1,
    "expression": "@daily",
    "first": "a",
    "headers": None,
    "hidden": None,
    "holders": 10,
    "held": "[]",
    "host": "h",
    "jitter": 0.0,
    "job": 1,
    "jobs": "[1,2,3]",
    "keeps": "[]",
    "keys": "[]",
    "label": 1,
    "lane": 1,
    "lanes": "[1]",
    "last": "b",
    "lease": 1,
    "max_attempts": 1,
    "missed": "skip",
    "most": 10,
    "keep": None,
    "name": "n",
    "now": 0.0,
    "names": '["n"]',
    "pairs": "[]",
    "parameter": None,
    "path": None,
    "paused": 1,
    "pid": 1,
    "pauses": "[]",
    "priority": 0,
    "queue": "default",
    "queues": '["default"]',
    "ref": 1,
    "rate_count": None,
    "rate_seconds": None,
    "rows": "[]",
    "running": 1,
    "seq": 1,
    "session": 1,
    "settled": "[]",
    "signal": None,
    "since": 0.0,
    "size": 10,
    "message": "m",
    "span": 1,
    "spent": 1,
    "starts": "[]",
    "step": 1,
    "suspects": 1,
    "state": "scheduled",
    "taken": "[]",
    "task": None,
    "tasks": '["t"]',
    "timeout": 1.0,
    "fallback_attempts": 5,
    "fallback_timeout": None,
    "timezone": "UTC",
    "token": "t",
    "told": "[]",
    "until": None,
    "value": None,
    "version": 1,
    "while_waiting": 0,
    "worker": "w",
    "action": "a",
    "anew": 0,
    "changed": 1,
    "further": 1,
    "id": 1,
    "kept": 1,
    "newest": 1,
    "what": "{}",
    "who": "w",
    "came": "[]",
    "deadline": None,
    "edges": "[]",
    "facts": "[]",
    "flow": 1,
    "flows": "[1]",
    "given": "[]",
    "least": 0.0,
    "never": 0.0,
    "node": 1,
    "nodes": "[1]",
    "reason": None,
    "round": 0,
    "waiting": 0.0,
}

BY_ID = "INTEGER PRIMARY KEY (rowid=?)"
AVAILABLE = "COVERING INDEX rota_job_available (state=? AND lane=? AND queue=?)"
KEYED = "COVERING INDEX rota_job_keyed (state=? AND lane=?)"
AVAILABLE_FIRST = "COVERING INDEX rota_job_available (state=? AND lane=?)"
AVAILABLE_NEXT = "COVERING INDEX rota_job_available (state=? AND lane=? AND queue>?)"
KEYED_FIRST = "COVERING INDEX rota_job_keyed (state=? AND lane>?)"
KEYED_NEXT = "COVERING INDEX rota_job_keyed (state=? AND lane>?)"

WALKS = {
    "control/before": {BY_ID},
    "control/cancel_running": {BY_ID},
    "control/cancel_waiting": {BY_ID},
    "claim/claim": {BY_ID},
    "claim/claim_args": {BY_ID},
    "claim/claim_rows": {BY_ID},
    "claim/claim_lanes_next": {KEYED},
    "claim/claim_next": {AVAILABLE},
    "claim/claim_queues": {AVAILABLE},
    "claim/lanes_used": {KEYED_NEXT, KEYED_FIRST},
    "claim/queues_used": {AVAILABLE_NEXT, AVAILABLE_FIRST, KEYED_NEXT, KEYED_FIRST},
    "control/clear_next": {"INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
    "control/delete": {BY_ID},
    "jobs/get": {BY_ID},
    "jobs/list_available_from": {"INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
    "jobs/list_finished": {"INDEX rota_job_finished (state=? AND id>? AND id<?)"},
    "jobs/reach": {"INTEGER PRIMARY KEY (rowid<?)"},
    "jobs/reach_finished": {"INDEX rota_job_finished (state=? AND id<?)"},
    "tidy/prune_jobs": {BY_ID, "COVERING INDEX rota_job_kept (keep_until<?)"},
    "sessions/rescue_held": {"INDEX rota_job_running (session=?)"},
    "sessions/rescue_jobs": {BY_ID},
    "control/retry": {BY_ID},
    "settle/settle_again": {BY_ID},
    "enqueue/unique_replace": {BY_ID},
    "sessions/session_cancels": {"INDEX rota_job_running (session=?)"},
    "sessions/session_release": {"INDEX rota_job_running (session=?)"},
    "settle/settle_finish": {BY_ID},
    "settle/settle_finish_told": {BY_ID},
    "settle/settle_forget": {BY_ID},
    "settle/settle_held": {BY_ID},
    "settle/settle_wait": {BY_ID},
    "stage/stage": {BY_ID},
    "stage/stage_due": {"COVERING INDEX rota_job_waiting (scheduled_at<?)"},
    "stage/stage_next": {"COVERING INDEX rota_job_waiting (scheduled_at>?)"},
    "control/states": {BY_ID},
}
"""How statements find their rows of `rota_job`."""


@pytest.fixture(scope="module", params=["empty", "large", "analyzed"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqliteConnection]:
    """A connection to a database with no jobs, with many, and with statistics; tests only read."""
    store = SqliteStore(tmp_path_factory.mktemp("plans") / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
        if request.param != "empty":
            fill(store, connection)
        if request.param == "analyzed":
            connection.database().execute("ANALYZE")
        yield connection


def fill(store: SqliteStore, connection: SqliteConnection) -> None:
    """Jobs in every state, most of them available."""
    session = open_session(store, connection)
    for move in (Move.COMPLETE, Move.DISCARD, Move.RETRY, None):
        enqueue(store, connection, 500)
        jobs = claim(store, connection, session, 500)
        if move is not None:
            settle(store, connection, session, *[settlement(job, move) for job in jobs])
    enqueue(store, connection, 500, delay=DUE)
    for queue in ("default", "mail", "images"):
        for priority in (0, 5):
            enqueue(store, connection, 3000, queue=queue, priority=priority)


def plan(connection: SqliteConnection, name: str) -> list[str]:
    """SQLite's plan for a statement."""
    text = statement(PACKAGE, name).text
    rows = connection.database().execute(f"EXPLAIN QUERY PLAN {text}", PARAMS).fetchall()
    return [row[3] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_valid(connection: SqliteConnection, name: str) -> None:
    """Each file holds one statement that the database takes."""
    if not statement(PACKAGE, name).text.startswith("PRAGMA"):
        assert plan(connection, name) is not None


@pytest.mark.parametrize("name", sorted(WALKS))
def test_the_hot_path_walks_its_indexes(connection: SqliteConnection, name: str) -> None:
    """Each statement touches what its header says, whatever the tables hold."""
    steps = plan(connection, name)
    found = (re.match(r"(SEARCH|SCAN) (?:rota_)?job (?:USING )?(.*)", step) for step in steps)
    assert {step[2] for step in found if step} == WALKS[name], steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(
    "name", ["notes/note_delete", "tidy/note_sweep", "notes/note_trim", "notes/notes"]
)
def test_notes_are_found_by_their_job(connection: SqliteConnection, name: str) -> None:
    """No statement about notes reads all of them."""
    steps = [step for step in plan(connection, name) if re.search(r"\brota_note\b", step)]
    assert steps
    assert not any(step.startswith("SCAN") for step in steps), steps


def test_counting_looks_at_running_jobs_alone(connection: SqliteConnection) -> None:
    """The counts of all other jobs are read from their totals."""
    steps = plan(connection, "queues/queues")
    jobs = [step for step in steps if "rota_job" in step]
    assert jobs == ["SEARCH rota_job USING COVERING INDEX rota_job_running (session>?)"]


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_says_what_it_does(name: str) -> None:
    """Each file begins with a comment, and is used by an operation."""
    source = (files(PACKAGE) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    assert source.startswith("-- ")
    assert source.rstrip().endswith(";")
    modules = [file for file in files(PACKAGE).iterdir() if file.name.endswith(".py")]
    assert any(f'"{name}"' in file.read_text(encoding="utf-8") for file in modules)
