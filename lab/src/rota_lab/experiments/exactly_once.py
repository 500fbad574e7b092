"""Which designs repeat or lose jobs? Articles 2 and 5: races, failures, workers that die."""

import os
import signal
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.measure.processes import ProcessEnded
from rota.measure.reports.report import Bars, Figures, Result
from rota_lab.experiment import Experiment
from rota_lab.expiry import EXPIRY, QUICK_EXPIRY
from rota_lab.protocol import Entry, Noting, make_protocol, read_protocol, until_done
from rota_lab.queue import Trial
from rota_lab.shift import Failed
from rota_lab.strategy import Job

RACES, FAILURES, CRASHES = "races", "failures", "crashes"

DONE, FAILED, KILLED = "done", "failed", "killed"
"""The protocol's texts for a job, besides `BEGUN`."""


class Tally(NamedTuple):
    """What became of the jobs.

    Attributes:
        again: How often a job was done that had been done before.
        repeated: How many jobs were done more than once.
        lost: How many jobs were never done.
        failed: How often work has failed, on purpose.
        killed: How often a worker killed itself, on purpose, in the middle of a job.
    """

    again: int
    repeated: int
    lost: int
    failed: int
    killed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the three parts.

    Attributes:
        part: The part's name.
        jobs: How many jobs.
        tally: What became of them.
        left: How many jobs are in the queue when the workers have ended.
        deadlocks: How often a worker was a deadlock's victim, without killed workers.
    """

    part: str
    jobs: int
    tally: Tally
    left: int
    deadlocks: int


@dataclass
class Accident:
    """Work that notes its beginning and its end, and may have an accident in between.

    Each `every`th job has it, the first time it is begun, and never again.
    """

    noting: Noting
    part: str
    every: int

    def __call__(self, text: str) -> None:
        """Do the work, or not."""
        self.noting.note(text)
        if self.part != RACES and int(text) % self.every == 0 and self.noting.times(text) == 1:
            if self.part == FAILURES:
                self.noting.note(text, FAILED)
                raise Failed(text)
            self.noting.note(text, KILLED)
            os.kill(os.getpid(), signal.SIGKILL)
        self.noting.note(text, DONE)


class ExactlyOnce(Experiment[Sample]):
    """Three parts: all goes well, some work fails, some workers are killed."""

    name = "exactly-once"
    question = "Which designs repeat or lose jobs?"
    summary = (
        "Has workers race for jobs; then some work fails; then some workers are killed at work,"
        " and others take their place. Draws how often jobs were done again, and how many were never done."
    )
    see = (
        "While all goes well, no job may be done twice: a design that repeats jobs in races hands"
        " them out twice. Work that fails must be done later, once: a design that loses jobs here"
        " took them out of the queue before they were done. The same holds when a worker is killed"
        " in the middle of a job. A design that works a job in the transaction that removes it"
        " repeats nothing even then. A design that records in batches that jobs are done, as Rota"
        " does, repeats the killed worker's jobs that were done and not yet recorded: no job is"
        " lost, but handlers must cope with a repetition after a crash. Here Rota repeats more than"
        " elsewhere: the work blocks the worker's event loop, which records nothing until it has a"
        " turn. A worker that dies between the work and its record makes any of these designs"
        " repeat the job, unless both are in one transaction; that moment is not tried here."
    )
    article = 5
    said = (
        "With one attempt to delete, Laravel's original design ran 11,800 jobs instead of 10,000"
        " on MySQL: its delete is a deadlock's victim, and the job expires and is run again. With"
        " five attempts, with a delete mark, and with optimistic locking each job ran exactly once."
        " Article 2 names two more mistakes: a subselect without a lock hands the same row to"
        " several workers, and a job that is marked as done when it is handed out is lost in a crash."
    )
    variants = ("unlocked-subselect", "sequence-requeued", "laravel-retry", "laravel-mark")
    full = {
        "jobs": 2000, "workers": 8, "failing_every": 20, "killing_every": 200, "patience": 100,
        **EXPIRY,
    }  # fmt: skip
    quick = {
        "jobs": 30, "workers": 2, "failing_every": 6, "killing_every": 20, "patience": 5,
        **QUICK_EXPIRY,
    }  # fmt: skip

    def samples(self, settings: Mapping[str, float]) -> int:
        del settings
        return 3

    def measure(self, trial: Trial) -> Generator[Sample, None, None]:
        for part in (RACES, FAILURES, CRASHES):
            yield _try(trial, part)

    def result(
        self, taken: Mapping[str, Sequence[Sample]], settings: Mapping[str, float]
    ) -> Result:
        del settings
        figures: dict[str, Figures] = {
            f"{name}, {sample.part}": {
                "jobs": sample.jobs,
                "done_again": sample.tally.again,
                "repeated_jobs": sample.tally.repeated,
                "never_done": sample.tally.lost,
                "left_in_the_queue": sample.left,
                "failed_on_purpose": sample.tally.failed,
                "killed_on_purpose": sample.tally.killed,
                "deadlocks": sample.deadlocks,
            }
            for name, samples in taken.items()
            for sample in samples
        }

        def bars(quantity: str) -> dict[str, dict[str, float]]:
            return {
                f"in {part}": {
                    name: float(getattr(sample.tally, quantity))
                    for name, samples in taken.items()
                    for sample in samples
                    if sample.part == part
                }
                for part in (RACES, FAILURES, CRASHES)
            }

        return Result(
            figures={"runs": figures},
            charts=(
                Bars(
                    "Jobs done again: with a sound design only after crashes",
                    "times that a job was done again", bars("again"), stacked=True,
                ),
                Bars(
                    "Jobs never done: lost, or taken by a worker that does not give them back",
                    "jobs that were not done",
                    bars("lost"), stacked=True,
                ),
            ),
            notes=(
                ("A job counts as never done if it was not done when the queue was empty, or when nothing"
                " had happened for as long as the setting `patience` says, in seconds. Designs that"
                " wait before they hand a dead worker's job out again, for a lease or an expiry, need a"
                " longer patience. A job that is never done and left in the queue may be recovered, by"
                " hand or when its worker ends; other jobs that are never done are gone."),
            ),
        )  # fmt: skip


def tally(jobs: Sequence[str], entries: Sequence[Entry]) -> Tally:
    """What became of these jobs, by the protocol."""
    whats = Counter(entry.what for entry in entries)
    done = Counter(entry.job for entry in entries if entry.what == DONE)
    return Tally(
        again=done.total() - len(done),
        repeated=sum(times > 1 for times in done.values()),
        lost=len({*jobs} - done.keys()),
        failed=whats[FAILED],
        killed=whats[KILLED],
    )


def _try(trial: Trial, part: str) -> Sample:
    settings = trial.settings
    jobs = [str(number) for number in range(1, int(settings["jobs"]) + 1)]
    every = int(settings["killing_every" if part == CRASHES else "failing_every"])
    with trial.fresh() as queue:
        make_protocol(queue.location)
        queue.strategy.enqueue([Job(text) for text in jobs])
        work = Accident(Noting(queue.location), part, every)
        with queue.workers(int(settings["workers"]), work) as workers:
            workers.go()
            replaced = 0
            for _ in until_done(queue.strategy, settings["patience"]):
                replaced += workers.replace()
                if replaced > tally(jobs, read_protocol(queue.location)).killed:
                    raise ProcessEnded("a worker ended by itself; its messages are above")
            workers.replace()
            # An error that has ended a worker is raised here.
            told = [*workers.tell(), *workers.stop()]
        entries = read_protocol(queue.location)
        left = queue.strategy.left()
    return Sample(
        part, len(jobs), tally(jobs, entries), left, sum(len(report.deadlocks) for report in told)
    )
