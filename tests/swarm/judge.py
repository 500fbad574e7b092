"""The verdict: whether ledger and database agree. Each check gives what is wrong, or nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.swarm.facts import Facts
from tests.swarm.story import Fate, Job, Run, Story

EXACTLY_ONCE = {"charge", "acharge"}
PLACES = {"single": 1, "crowd": 3, "subject": 1}
"""How many jobs of a key run at once, by the word before its colon."""

IN_ORDER, ROUNDS = "single", "subject"
"""Tasks: that whose order is looked at, and that whose jobs come round."""

ROOM = 1_000_000
PERIOD = 2
"""Seconds between two due times of the cron entry."""

SHOWN = 5
"""Examples in a complaint."""

LARGEST = 4 * 1024 * 1024
"""Bytes of a table after it was tidied, with its indexes."""


def complaints(story: Story, facts: Facts) -> list[str]:
    """All that is wrong."""
    jobs = [*story.jobs.values()]
    checks = (
        _lost(jobs), _undone(jobs), _twice(story), _again(story), _effects(jobs, facts.effects), _limits(jobs),
        _order(story), _cron(story), _counts(story, facts), _database(facts),
    )  # fmt: skip
    return [said for check in checks for said in check]


def _lost(jobs: list[Job]) -> Iterator[str]:
    """A job with an effect is done with that, whatever its handler was told of the commit."""
    others = EXACTLY_ONCE | {"poison"}
    lost = [
        job for job in jobs if job.fate is Fate.SURE and job.task not in others and not job.done
    ]
    yield from _said("acknowledged and never done", lost)


def _undone(jobs: list[Job]) -> Iterator[str]:
    yield from _said("rolled back and run", [j for j in jobs if j.fate is Fate.NEVER and j.runs])


def _twice(story: Story) -> Iterator[str]:
    """A number that two jobs have; a due time may come again where its first job was lost."""
    twice = [
        job
        for job in story.jobs.values()
        if len({run.job for run in job.runs}) > 1 and not (job.how == "cron" and story.tails)
    ]
    yield from _said("stored twice", twice)


def _again(story: Story) -> Iterator[str]:
    """Jobs that were done twice with nothing to disturb them, except those that come round."""
    again = []
    for job in story.jobs.values():
        done = [run for run in job.runs if run.done]
        pairs = pairwise(done)
        if job.task != ROUNDS and any(story.quiet(one.begin, other.begin) for one, other in pairs):
            again.append(job)
    yield from _said("done twice without a reason", again)


def _effects(jobs: list[Job], effects: Mapping[int, int]) -> Iterator[str]:
    wrong = []
    for job in jobs:
        if job.task in EXACTLY_ONCE:
            found = effects.get(job.number, 0)
            least = 1 if job.fate is Fate.SURE else 0
            most = 0 if job.fate is Fate.NEVER else 1
            if not least <= found <= most:
                wrong.append(job)
    yield from _said("not with exactly one effect", wrong)


def _limits(jobs: list[Job]) -> Iterator[str]:
    """Runs of living workers: more at once than a key has places."""
    by_key: dict[str, list[tuple[float, int, Job]]] = defaultdict(list)
    for job in jobs:
        for run in job.runs:
            if run.key != "-" and run.counts > run.begin:
                by_key[run.key] += [(run.begin, 1, job), (run.counts, -1, job)]
    for key, moments in sorted(by_key.items()):
        places, running = PLACES[key.partition(":")[0]], 0
        for at, change, job in sorted(moments, key=lambda moment: moment[:2]):
            running += change
            if running > places:
                yield f"{key}: {running} at once, {places} allowed, at {at:.3f} with {_shown(job)}"
                break


def _order(story: Story) -> Iterator[str]:
    """Undisturbed jobs of a key with one place that a hand committed one after another."""
    hands: dict[tuple[int, str], list[tuple[Job, Run]]] = defaultdict(list)
    for job in story.jobs.values():
        if job.task == IN_ORDER and job.fate is Fate.SURE and job.how != "prepare" and job.runs:
            hands[job.number // ROOM, job.runs[0].key].append((job, job.runs[0]))
    wrong = []
    for told in hands.values():
        told.sort(key=lambda pair: pair[0].number)
        for (one, first), (other, second) in pairwise(told):
            if second.begin < first.begin and story.quiet(one.tried, second.begin):
                wrong += [one, other]
    yield from _said("started in another order", wrong)


def _cron(story: Story) -> Iterator[str]:
    """Due times between the first and the last that have no job."""
    if story.faults.get("clock"):
        return
    due = sorted(-job.number for job in story.jobs.values() if job.how == "cron" and job.done)
    missing = [{*range(due[0], due[-1], PERIOD)} - {*due}] if due else []
    if any(missing):
        yield f"{len(missing[0])} due times of the cron entry have no job: {sorted(missing[0])[:SHOWN]}"


def _counts(story: Story, facts: Facts) -> Iterator[str]:
    """Finished jobs whose retention was over by a clock that was set back are not counted any more."""
    excused = {"completed", "cancelled"} if story.faults.get("clock") else set()
    if wrong := [row for row in facts.miscounted if row[2] not in excused]:
        yield f"counters differ from counting: {wrong[:SHOWN]}"


def _database(facts: Facts) -> Iterator[str]:
    if facts.left:
        yield f"jobs are not finished: {dict(facts.left)}"
    if innocent := [task for task in facts.discarded if not task.endswith(".poison")]:
        yield f"{len(innocent)} jobs were discarded: {dict(Counter(innocent))}"
    if left := {table: rows for table, rows in facts.rows.items() if rows}:
        yield f"tables are not empty: {left}"
    if large := {table: size for table, size in facts.sizes.items() if size > LARGEST}:
        yield f"tables have grown: {large}"


def _said(what: str, jobs: Sequence[Job]) -> Iterator[str]:
    if jobs:
        examples = "; ".join(_shown(job) for job in jobs[:SHOWN])
        yield f"{len(jobs)} jobs {what}, such as {examples}"


def _shown(job: Job) -> str:
    runs = ", ".join(f"job {run.job} at {run.begin:.2f} in {run.pid}" for run in job.runs[:3])
    return f"{job.number} ({job.task}, {job.how}, {job.fate}; {runs or 'no run'})"
