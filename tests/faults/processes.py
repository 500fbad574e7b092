"""Worker processes with a ledger: each handler writes down its start and its end.

The ledger is one file to which every process appends whole lines; it belongs to no database, so it
survives whatever happens to that.
"""

import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from rota import JobRecord, Rota, State
from rota.model.job import JobFilter
from rota.store.migrate import migrate
from tests.fixtures.forks import Fork

T = TypeVar("T")

LONG = 30.0

MODULE = """
import asyncio
import os
import time
from datetime import datetime
from pathlib import Path

from rota import Again, Context, LeaseLost, Rota

HERE = Path(__file__).parent
rota = Rota(os.environ.get("LEDGER_URL", "sqlite:///nobody-opens-this.db"))


def note(what, number, attempt):
    with open(HERE / "ledger", "ab", buffering=0) as ledger:
        ledger.write(f"{what} {number} {attempt} {os.getpid()}\\n".encode())


@rota.task
async def quick(number: int, context: Context) -> None:
    note("start", number, context.attempt)
    await asyncio.sleep(0.001)
    note("end", number, context.attempt)


@rota.task(queue="long")
async def patient(number: int, context: Context) -> None:
    note("start", number, context.attempt)
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    note("end", number, context.attempt)


@rota.task(queue="long", store_result=True)
async def stubborn(number: int, context: Context) -> int:
    note("start", number, context.attempt)
    while not (HERE / f"go {os.getpid()}").exists():
        time.sleep(0.01)  # keeps the loop, as a handler must not
    note("end", number, context.attempt)
    return os.getpid()


@rota.task
async def poison(number: int, context: Context) -> None:
    note("start", number, context.attempt)
    os.kill(os.getpid(), 9)


@rota.task
async def tick(at: datetime, context: Context) -> None:
    note("start", int(at.timestamp()), context.attempt)
    note("end", int(at.timestamp()), context.attempt)


def hold(where, number, attempt):
    if (HERE / f"hold {where}").exists():
        note(where, number, attempt)
        while (HERE / f"hold {where}").exists():
            time.sleep(0.01)


@rota.task(queue="long")
def crawl(number: int, context: Context) -> Again | None:
    note("start", number, context.attempt)
    hold("round", number, context.attempt)
    note("end", number, context.attempt)
    return None if (HERE / "enough").exists() else Again(after=0.01)


URL = os.environ.get("LEDGER_URL", "")
INSERT = f"INSERT INTO effect VALUES ({'%s, %s' if URL.startswith('postgres') else '?, ?'})"


@rota.task(queue="effects")
def charge(number: int, context: Context) -> None:
    note("start", number, context.attempt)
    hold("begun", number, context.attempt)
    try:
        with context.transaction() as tx:
            tx.execute(INSERT, [number, os.getpid()])
            hold("written", number, context.attempt)
    except LeaseLost:
        note("refused", number, context.attempt)
        raise
    except Exception:
        note("failed", number, context.attempt)
        raise
    note("end", number, context.attempt)
    hold("ended", number, context.attempt)


@rota.task(queue="effects")
def prepare(number: int, context: Context) -> None:
    import psycopg

    note("start", number, context.attempt)
    with psycopg.connect(URL) as conn:
        with context.transaction(conn, commit=False):
            conn.execute(INSERT, [number, os.getpid()])
        conn.execute(f"PREPARE TRANSACTION 'rota {number}'")
        hold("prepared", number, context.attempt)
        conn.autocommit = True
        # From the commit on the place of its limit is another job's.
        note("end", number, context.attempt)
        conn.execute(f"COMMIT PREPARED 'rota {number}'")


def page(name, number, attempt):
    note(name, number, attempt)
    return os.getpid()


@rota.task(queue="steps", store_result=True)
def walk(number: int, context: Context) -> list[int]:
    note("start", number, context.attempt)
    pids = [context.step("one", page, "one", number, context.attempt)]
    with context.step_transaction("book") as tx:
        tx.execute(INSERT, [number, os.getpid()])
        hold("written", number, context.attempt)
    hold("stepped", number, context.attempt)
    pids.append(context.step("two", page, "two", number, context.attempt))
    note("end", number, context.attempt)
    return pids


@rota.task(queue="flow", max_attempts=100)
async def part(number: int, context: Context) -> int:
    note("start", number, context.attempt)
    await asyncio.sleep(0.005)
    note("end", number, context.attempt)
    return number


@rota.task(queue="flow", max_attempts=100, store_result=True)
def total(numbers: list[int], context: Context) -> int:
    note("total", len(numbers), context.attempt)
    hold("summing", len(numbers), context.attempt)
    return sum(numbers)


if (HERE / "around").exists():

    @rota.around_run
    async def around(context, call_next):
        note("enter", context.args["number"], context.attempt)
        value = await call_next()
        note("leave", context.args["number"], context.attempt)
        return value

    @rota.around_run
    def around_in_thread(context, call_next):
        note("thread-enter", context.args["number"], context.attempt)
        value = call_next()
        note("thread-leave", context.args["number"], context.attempt)
        return value


if __name__ == "__main__":
    import logging
    import sys

    from rota import WorkerConfig
    from rota.database.own_transaction import Own
    from rota.worker import Worker

    commit = Own.commit

    def held_commit(self):
        hold("settled", 0, 0)
        commit(self)

    Own.commit = held_commit
    logging.basicConfig(level="INFO")
    Worker(rota, WorkerConfig(**eval(sys.argv[1]))).run()
"""


def until(look: Callable[[], T], what: str, seconds: float = LONG) -> T:
    """Look again and again until there is an answer that counts as true."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"waited {seconds} seconds for {what}"
        time.sleep(0.01)
    return answer


class Ledger:
    """A folder with an app of its own, the ledger, and the worker processes."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.app = Rota(url)
        (folder / "app.py").write_text(MODULE, encoding="utf-8")
        (folder / "ledger").touch()
        self._workers: list[WorkerProcess] = []
        with closing(self.app.database.store.connect()) as connection:
            migrate(self.app.database.store, connection)
        namespace: dict[str, Any] = {"__file__": str(folder / "app.py"), "__name__": "app"}
        exec(MODULE, namespace)  # noqa: S102 - the module above, with this test's app
        tasks = namespace["rota"].tasks
        (
            self.quick,
            self.patient,
            self.stubborn,
            self.poison,
            self.tick,
            self.crawl,
            self.charge,
            self.prepare,
            self.walk,
            self.part,
            self.total,
        ) = (
            self.app.task(
                name=task.name,
                queue=task.options.queue,
                max_attempts=task.options.max_attempts,
                store_result=task.store_result,
            )(task.function)
            for task in tasks.values()
        )

    def worker(self, url: str = "", **config: Any) -> "WorkerProcess":
        """Start a worker, by another way to the database if one is given, and wait until it works."""
        worker = WorkerProcess(self.folder, url or self.url, config)
        self._workers.append(worker)
        until(lambda: "worker started" in worker.said, "a worker to start")
        return worker

    def go(self, worker: "WorkerProcess | None" = None) -> None:
        """Let the handlers that wait come to their end."""
        self.say(f"go {worker.pid}" if worker else "go")

    def hold(self, where: str) -> None:
        """Let handlers stop at this place."""
        self.say(f"hold {where}")

    def unhold(self, where: str) -> None:
        """Let them go on."""
        (self.folder / f"hold {where}").unlink()

    def say(self, what: str) -> None:
        """Leave a file that handlers look for, such as `enough` or `around`."""
        (self.folder / what).touch()

    def lines(self, what: str) -> list[tuple[int, int, int]]:
        """What the handlers have noted of this, in order: the number, the attempt, the process."""
        text = (self.folder / "ledger").read_text(encoding="ascii")
        # The last line may be on its way.
        noted = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
        return [(int(n), int(attempt), int(pid)) for said, n, attempt, pid in noted if said == what]

    def noted(self, what: str) -> Counter[int]:
        """How often the handlers of each number have noted this."""
        return Counter(number for number, _, _ in self.lines(what))

    def ended(self, count: int) -> bool:
        """Whether the handlers of so many numbers have come to their end."""
        return len(self.noted("end")) >= count

    def records(self, state: State | None = None) -> list[JobRecord]:
        """The jobs in a state, or all."""
        return self.app.database.run(
            self.app.database.store.list_jobs(JobFilter(state=state, limit=1_000_000))
        )

    def count(self, state: State) -> int:
        """How many jobs are in a state."""
        return sum(
            queue.counts.get(state, 0)
            for queue in self.app.database.run(self.app.database.store.queues())
        )

    def unfinished(self) -> int:
        """How many jobs are not finished."""
        # One look: between two of them a job may go from where the second looks to the first.
        queues = self.app.database.run(self.app.database.store.queues())
        return sum(n for queue in queues for state, n in queue.counts.items() if not state.finished)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.end()
            if error is not None:
                logging.getLogger(__name__).error("worker %d said:\n%s", worker.pid, worker.said)
        self.app.close()


class WorkerProcess:
    """A worker of the ledger's app."""

    def __init__(self, folder: Path, url: str, config: dict[str, Any]) -> None:
        self._process = Fork(folder / "app.py", [repr(config)], Path.cwd(), LEDGER_URL=url)
        self.pid = self._process.pid
        self._said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        with self._process.stderr as stderr:
            self._said.extend(iter(stderr.readline, ""))

    @property
    def said(self) -> str:
        """Its log so far."""
        return "".join(self._said)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; a frozen process then stands still, with all its threads."""
        self._process.send_signal(number)

    def end(self) -> None:
        """End it at once, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
