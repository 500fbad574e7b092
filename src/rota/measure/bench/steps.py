"""What does a step cost, next to a bare INSERT with its commit, and what do jobs cost that sleep?"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing

from rota.app.app import Rota
from rota.app.context import Context
from rota.config import WorkerConfig
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import LOOK
from rota.measure.bench.enqueue import bare_insert
from rota.measure.bench.figures import milliseconds, percentiles
from rota.measure.bench.idle import watch
from rota.measure.bench.observer import observing
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.model.states import State
from rota.terminal.progress import Progress
from rota.worker import Worker

SIGNALS = 200
"""Jobs that sleep and are signalled, at most."""

AWAKE = (State.AVAILABLE, State.RUNNING)

NOTES = (
    (
        "steps: a handler in a thread takes steps, whose functions do nothing, and after each it inserts one row as plainly as the "
        "driver can, with a commit. ratio: the median of the steps by that of the INSERTs. signal: a call of JobHandle.signal for "
        "a job that sleeps, until the job is available. asleep: an idle worker beside so many jobs that wait for a signal, see "
        "`rota bench idle`."
    ),
)


def steps(
    scratch: Scratch,
    *,
    count: int,
    asleep: Sequence[int],
    seconds: float,
    rest: float,
    progress: Progress,
) -> Result:
    """Take so many steps; then watch an idle worker beside each number of jobs that sleep."""
    with scratch.fresh() as url:
        taken, inserted = _take(url, count, progress)
    figures: dict[str, Figures] = {
        "steps": percentiles(taken),
        "inserts": percentiles(inserted),
    }
    signals: list[float] = []
    idle: dict[str, Figures] = {}
    for jobs in asleep:
        with scratch.fresh() as url:
            signals += _fall_asleep(url, jobs, progress)
            idle[str(jobs)] = _watch(url, scratch, (seconds, rest), progress)
    median = milliseconds(taken, 0.5) or 0.0
    bare = milliseconds(inserted, 0.5) or 0.0
    chart = Bars(
        "A step, and a bare INSERT with its commit",
        "median, milliseconds",
        {"median": {"step": median, "INSERT": bare}},
    )
    return Result(
        figures={
            **figures,
            "ratio": round(median / bare, 2) if bare else None,
            "signals": percentiles(signals),
            "asleep": idle,
        },
        series={},
        charts=(chart,),
        notes=NOTES,
    )


def _nothing() -> int:
    return 1


def _take(url: str, count: int, progress: Progress) -> tuple[list[float], list[float]]:
    """The seconds of each step, and of each bare INSERT."""
    taken: list[float] = []
    inserted: list[float] = []
    progress.begin("steps", count)

    def walk(ctx: Context) -> None:
        # Here, because SQLite's connections stay in their thread.
        insert, close = bare_insert(url)
        for number in range(count):
            began = time.perf_counter()
            ctx.step(f"step {number}", _nothing)
            done = time.perf_counter()
            insert(number)
            inserted.append(time.perf_counter() - done)
            taken.append(done - began)
        close()

    with closing(Rota(url)) as app:
        job = app.task(name="bench.walk", max_attempts=1)(walk).enqueue()
        asyncio.run(_run_all(app, progress))
        job.result(0)
    return taken, inserted


def _fall_asleep(url: str, count: int, progress: Progress) -> list[float]:
    """Let so many jobs wait for a signal; the seconds that some signals took."""

    async def wait(ctx: Context) -> None:
        await ctx.wait_for("go")

    progress.begin("fall asleep", count)
    seconds: list[float] = []
    with closing(Rota(url)) as app:
        jobs = app.task(name="bench.wait")(wait).enqueue_many([()] * count)
        asyncio.run(_run_all(app, progress))
        for job in jobs[: min(SIGNALS, count // 2)]:
            began = time.perf_counter()
            app.job(job).signal("go")
            seconds.append(time.perf_counter() - began)
        asyncio.run(_run_all(app, progress))
    return seconds


async def _run_all(app: Rota, progress: Progress) -> None:
    """Run what can run, until all that is left sleeps."""
    worker = Worker(app, WorkerConfig())
    running = asyncio.ensure_future(worker.arun(signals=False))
    while True:
        queues = await asyncio.to_thread(app.database.run, app.database.store.queues())
        progress.at(sum(queue.counts.get(State.SCHEDULED, 0) for queue in queues))
        if not any(queue.counts.get(state) for queue in queues for state in AWAKE):
            break
        await asyncio.sleep(LOOK)
    worker.stop()
    await running


def _watch(url: str, scratch: Scratch, times: tuple[float, float], progress: Progress) -> Figures:
    """What an idle worker costs there."""
    with observing(url, scratch) as observer, Crew(Plan(url)) as crew:
        crew.go()
        figures = watch(crew, observer, *times, progress)
        crew.stop()
    return figures
