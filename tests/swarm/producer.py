"""A producer of the swarm: `python -m tests.swarm.producer`, as its environment says.

It has several hands, which enqueue in every way there is, in transactions that end late, oddly, or
not well. What a hand does comes from the seed alone.
"""

import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from typing import Any

from rota import Enqueued, Task
from tests.swarm import tasks
from tests.swarm.callers import ERRORS, Alchemy, Caller, Own, Psycopg
from tests.swarm.tasks import ALWAYS, URL, ledger, rota

HANDS = 3
"""Threads of a producer."""

ROOM = 1_000_000
"""Numbers of a hand."""

BEHIND = 15.0
"""Seconds of its work that a hand makes up at the most."""

GATES = {"single": 12, "crowd": 6, "rated": 4, "fair": 20, "subject": 30}
"""How many keys the jobs of a task share."""

SHARES = {
    "quick": 30, "thread": 10, "process": 3, "together": 15, "flaky": 4, "single": 8, "crowd": 6,
    "rated": 4, "fair": 8, "subject": 5, "charge": 4, "acharge": 4,
}  # fmt: skip
TASKS = os.environ["SWARM_TASKS"].split(",")
"""Those of these that are enqueued."""

SMALL = {"process", "single", "subject", "charge", "acharge"}
"""Tasks of which few are enqueued at once."""

ENDINGS = {"commit": 70, "rollback": 15, "prepare": 12, "leave": 3}
SQL = (
    "SELECT rota.enqueue('tests.swarm.tasks.{task}', '{args}', queue => '{queue}',"
    " max_attempts => " + str(ALWAYS) + ")"
)

Span = tuple[int, int]
"""The first number, and how many there are."""


class Hand:
    """Enqueues one transaction after another."""

    def __init__(self, name: str, number: int, rate: float) -> None:
        self._chance = random.Random(f"{os.environ['SWARM_SEED']} {name} {number}")
        self._next = (int(os.environ["SWARM_FIRST"]) + number) * ROOM
        self._rate = rate
        self._name = f"swarm {name} {number}"
        self._psycopg = Psycopg(URL)
        self._callers: list[Caller] = [Own(rota), self._psycopg, Alchemy(URL)]
        self._prepared: list[tuple[str, list[Span]]] = []

    def run(self, stop: threading.Event) -> None:
        """Go on until it is enough; what was missed in an outage is made up."""
        due = time.monotonic()
        while not stop.is_set():
            first = self._next
            if self._chance.random() < 0.4:
                self._alone()
            else:
                self._transaction()
            if self._prepared and self._chance.random() < 0.4:
                self._decide()
            due = max(due + (self._next - first) / self._rate, time.monotonic() - BEHIND)
            stop.wait(due - time.monotonic())
        while self._prepared:
            self._decide()

    def _alone(self) -> None:
        """Without a transaction: committed when it returns."""
        task, rows = self._drawn()
        with suppress(*ERRORS):
            span, unwanted = self._tried(task, rows, "alone", conn=None)
            self._say("sure", [span])
            self._say("never", unwanted)

    def _transaction(self) -> None:
        caller = self._chance.choice(self._callers)
        [ending] = self._chance.choices([*ENDINGS], [*ENDINGS.values()])
        if ending == "prepare":
            caller = self._psycopg
        kept: list[Span] = []
        undone: list[Span] = []
        began = self._next
        try:
            conn = caller.begin()
            for _ in range(self._chance.randint(1, 4)):
                aside = self._chance.random() < 0.3
                if aside:
                    caller.execute("SAVEPOINT part")
                span, unwanted = self._part(caller, conn, ending)
                back = aside and self._chance.random() < 0.5
                if back:
                    caller.execute("ROLLBACK TO SAVEPOINT part")
                (undone if back else kept).append(span)
                undone += unwanted
                time.sleep(self._chance.choice((0.0, 0.0, 0.01, 0.1, 0.6)))
            if ending == "rollback":
                caller.rollback()
                undone, kept = [(began, self._next - began)], []
        except ERRORS:
            # It was never committed: the server undoes it, whatever it knows of the client.
            self._forget(caller)
            self._say("never", [(began, self._next - began)])
            return
        self._end(caller, ending, kept, undone)

    def _part(self, caller: Caller, conn: Any, ending: str) -> tuple[Span, list[Span]]:
        task, rows = self._drawn(ending)
        if caller is self._psycopg and ending != "prepare" and len(rows) < 5 and self._plain(task):
            for row in rows:
                self._say_tried(row["number"], 1, task, "sql")
                text = SQL.format(
                    task=task, args=json.dumps(row), queue=self._task(task).options.queue
                )
                caller.execute(text)
            return (rows[0]["number"], len(rows)), []
        return self._tried(task, rows, ending, conn=conn)

    def _end(self, caller: Caller, ending: str, kept: list[Span], undone: list[Span]) -> None:
        gid = f"{self._name} {self._next}"
        try:
            match ending:
                case "commit":
                    caller.commit()
                    self._say("sure", kept)
                case "prepare":
                    caller.execute(f"PREPARE TRANSACTION '{gid}'")
                    self._psycopg.outside("SELECT 1")
                    self._prepared.append((gid, kept))
                case "leave":
                    # The connection is gone in the middle of it.
                    caller.close()
                    undone += kept
                case _:
                    pass  # it was rolled back
        except ERRORS:
            self._forget(caller)
        self._say("never", undone)

    def _decide(self) -> None:
        """End a transaction that was prepared."""
        gid, kept = self._prepared.pop(self._chance.randrange(len(self._prepared)))
        commit = self._chance.random() < 0.7
        try:
            self._psycopg.outside(f"{'COMMIT' if commit else 'ROLLBACK'} PREPARED '{gid}'")
        except ERRORS:
            self._forget(self._psycopg)
        else:
            self._say("sure" if commit else "never", kept)

    def _drawn(self, ending: str = "") -> tuple[str, list[dict[str, int]]]:
        """A task, and the args of some jobs of it."""
        [task] = self._chance.choices(TASKS, [SHARES[task] for task in TASKS])
        if ending and task == "subject":
            # A key that an open transaction has keeps other producers waiting.
            task = "quick" if "quick" in TASKS else TASKS[0]
        [count] = self._chance.choices((1, 3, 10, 40, 250), (50, 20, 18, 8, 2))
        rows = []
        for _ in range(min(count, 8) if task in SMALL else count):
            row = {"number": self._next}
            if task in GATES:
                row["gate"] = self._chance.randrange(GATES[task])
            rows.append(row)
            self._next += 1
        return task, rows

    def _tried(
        self, task: str, rows: list[dict[str, int]], how: str, *, conn: Any
    ) -> tuple[Span, list[Span]]:
        """Enqueue jobs; their numbers, and those that are not stored since their key is taken."""
        options: dict[str, Any] = {"wake": how != "prepare"}
        if conn is not None:
            options["conn"] = conn
        if task not in GATES and self._chance.random() < 0.1:
            options["delay"] = self._chance.choice((0.0, 0.3, 2.0))
        if task != "together" and self._chance.random() < 0.1 and task not in GATES:
            options["priority"] = 5
        first = rows[0]["number"]
        self._say_tried(first, len(rows), task, how)
        using = self._task(task).using(**options)
        args = [(row["number"],) for row in rows] if task == "together" else rows
        if len(rows) > 1:
            found: Enqueued = using.enqueue_many(args)
            created = {*found.created}
            unwanted = [
                (row["number"], 1)
                for row, job in zip(rows, found, strict=True)
                if job not in created
            ]
            return (first, len(rows)), self._merged(rows, found, unwanted)
        arg = rows[0]
        job = using.enqueue(arg["number"]) if task == "together" else using.enqueue(**arg)
        return (first, 1), [(first, 1)] if job.duplicate else []

    @staticmethod
    def _merged(rows: list[dict[str, int]], found: Enqueued, unwanted: list[Span]) -> list[Span]:
        """Of several jobs with one key the first is stored."""
        seen = set()
        for row, job in zip(rows, found, strict=True):
            if job in seen:
                unwanted.append((row["number"], 1))
            seen.add(job)
        return unwanted

    def _task(self, name: str) -> Task[..., Any, Any]:
        task: Task[..., Any, Any] = getattr(tasks, name)
        return task

    @staticmethod
    def _plain(task: str) -> bool:
        """Whether a job of the task may come from SQL, which knows no keys."""
        return task in {"quick", "thread", "flaky", "charge"}

    @staticmethod
    def _say_tried(first: int, count: int, task: str, how: str) -> None:
        ledger.say("tried", first, count, task, how)

    @staticmethod
    def _say(what: str, spans: list[Span]) -> None:
        for first, count in spans:
            if count:
                ledger.say(what, first, count)

    @staticmethod
    def _forget(caller: Caller) -> None:
        with suppress(*ERRORS):
            caller.close()


def main() -> None:
    """Enqueue until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    name, rate = os.environ["SWARM_NAME"], float(os.environ["SWARM_RATE"])
    hands = [
        threading.Thread(target=Hand(name, number, rate / HANDS).run, args=(stop,), daemon=True)
        for number in range(HANDS)
    ]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()


if __name__ == "__main__":
    main()
