"""Both stores against a small oracle: whatever is done to jobs, their states are those expected.

The oracle keeps a dozen lines of state per job and knows nothing of logs, cursors, leases or rows.
Hypothesis looks for a sequence of operations after which a store disagrees.
"""

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from rota import Limit, Unique
from rota.errors import LeaseLost
from rota.model.enqueued import Placed, Placing
from rota.model.job import ClaimedJob, JobId, JobSpec, Keys, LeaseId, Order, SessionId, SessionInfo
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.store.operation import Statement
from rota.store.postgres import rings
from rota.store.protocol import Store
from tests.store.factories import NOBODY, error_json, until

SETTINGS = settings(
    stateful_step_count=30,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=list(HealthCheck),
)

KEEP = 3600.0
FAR = 600.0
QUEUES = ("mail", "images")
LIMITS = {most: Limit(key="{key}", running=most) for most in (1, 3)}
WAITING = {State.SCHEDULED, State.RETRYABLE}
BACK = {Move.RETRY: State.RETRYABLE, Move.SNOOZE: State.SCHEDULED, Move.RELEASE: State.SCHEDULED}
ENDS = {
    Move.COMPLETE: State.COMPLETED,
    Move.DISCARD: State.DISCARDED,
    Move.CANCEL: State.CANCELLED,
}


@dataclass
class Expected:
    """What the oracle knows of a job."""

    queue: str
    priority: int
    max_attempts: int
    state: State
    due: bool = True
    spent: int = 0
    suspect: bool = False
    """Whether it was claimed as a suspect: then it has not begun."""
    fresh: bool = True
    """Whether it never came back: then its place in line is that of its id."""
    unwanted: bool = False
    line: str = ""
    """With whom it stands in line: those of its limit, of its fair key, or all without either."""
    places: int | None = None
    """How many of its line may run at once."""
    unique: str | None = None
    claimed: ClaimedJob | None = None
    session: SessionId | None = None

    def comes_back(self, state: State, *, due: bool = True) -> None:
        """It is given back, or waits, in the hands of nobody."""
        self.state, self.due, self.fresh = state, due, False
        self.claimed = self.session = None
        if self.unwanted:
            self.ends(State.CANCELLED)

    def ends(self, state: State) -> None:
        """It has come to its end."""
        self.state, self.unwanted = state, False
        self.claimed = self.session = None


@dataclass
class Place:
    """Where the machine works: a database that is empty at the start of each example."""

    store: Store
    connection: Connection
    close: Callable[[], None]


class Machine(RuleBasedStateMachine):
    """What can be done to a store."""

    def __init__(self, make: Callable[[], Place]) -> None:
        super().__init__()
        self.place = make()
        self.store = self.place.store
        self.jobs: dict[JobId, Expected] = {}
        self.paused: set[str] = set()
        self.living: list[SessionId] = []
        self.doomed: list[SessionId] = []
        self.dead: list[SessionId] = []
        self.old: list[tuple[SessionId, ClaimedJob]] = []
        self.replaced = False

    def teardown(self) -> None:
        self.place.close()

    def run(self, operation: Any) -> Any:
        return self.place.connection.run(operation)

    def pick(self, data: st.DataObject, *wanted: State) -> JobId | None:
        found = [job for job, one in self.jobs.items() if not wanted or one.state in wanted]
        return data.draw(st.sampled_from(found)) if found else None

    def of(self, session: SessionId) -> list[Expected]:
        return [one for one in self.jobs.values() if one.session == session]

    # Rules -----------------------------------------------------------------------------------

    @initialize()
    def first_worker(self) -> None:
        self.open_session(doomed=False)

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.integers(0, 1),
        count=st.sampled_from((1, 1, 2, 3, 250)),
        delay=st.sampled_from((None, None, 0.0, FAR)),
        attempts=st.integers(1, 3),
    )
    def enqueue(
        self, queue: str, priority: int, count: int, delay: float | None, attempts: int
    ) -> None:
        spec = JobSpec("shop.send", queue, priority, attempts, delay=delay)
        ids = self.run(self.store.enqueue(Order(spec, ["{}"] * count)))
        assert len(set(ids) - self.jobs.keys()) == count
        state = State.AVAILABLE if delay is None else State.SCHEDULED
        for job in ids:
            self.jobs[job] = Expected(queue, priority, attempts, state, due=delay != FAR)

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.integers(0, 1),
        most=st.sampled_from(list(LIMITS)),
        count=st.sampled_from((1, 2, 5)),
    )
    def enqueue_limited(self, queue: str, priority: int, most: int, count: int) -> None:
        spec = JobSpec("shop.send", queue, priority, 3, limit=LIMITS[most])
        keys = Keys(limit=[f"most {most}"] * count)
        for one in self.run(self.store.enqueue(Order(spec, ["{}"] * count, keys))).placed:
            expected = Expected(queue, priority, 3, State.AVAILABLE)
            expected.line, expected.places = f"most {most}", most
            assert one.job not in self.jobs
            self.jobs[one.job] = expected

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.integers(0, 1),
        keys=st.lists(st.sampled_from("ab"), min_size=1, max_size=5),
    )
    def enqueue_fair(self, queue: str, priority: int, keys: list[str]) -> None:
        spec = JobSpec("shop.send", queue, priority, 3)
        found = self.run(
            self.store.enqueue(Order(spec, ["{}"] * len(keys), Keys(fair=keys)))
        ).placed
        for one, key in zip(found, keys, strict=True):
            expected = Expected(queue, priority, 3, State.AVAILABLE, line=f"fair {key}")
            assert one.job not in self.jobs
            self.jobs[one.job] = expected

    @rule(
        priority=st.integers(0, 1),
        key=st.sampled_from("xy"),
        conflict=st.sampled_from(("skip", "replace")),
        delay=st.sampled_from((None, None, 0.0, FAR)),
    )
    def enqueue_unique(self, priority: int, key: str, conflict: str, delay: float | None) -> None:
        queue = QUEUES[0]
        unique = Unique(key="{key}", on_conflict=conflict)
        spec = JobSpec("shop.send", queue, priority, 3, delay=delay, unique=unique)
        holder = self.holder(key)
        [placed] = self.run(self.store.enqueue(Order(spec, ["{}"], Keys(unique=[key])))).placed
        state = State.AVAILABLE if delay is None else State.SCHEDULED
        if holder is None:
            assert placed == Placed(placed.job, Placing.CREATED)
            assert placed.job not in self.jobs
            expected = Expected(queue, priority, 3, state, due=delay != FAR, unique=key)
            self.jobs[placed.job] = expected
            return
        one = self.jobs[holder]
        if conflict == "skip" or one.state is State.RUNNING:
            assert placed == Placed(holder, Placing.SKIPPED)
            return
        assert placed == Placed(holder, Placing.REPLACED)
        one.comes_back(state, due=delay != FAR)
        one.priority, one.spent = priority, 0
        self.replaced = True

    def holder(self, key: str | None) -> JobId | None:
        """The job that has a unique key."""
        found = [
            job
            for job, one in self.jobs.items()
            if key is not None and one.unique == key and not one.state.finished
        ]
        assert len(found) <= 1
        return found[0] if found else None

    @rule(doomed=st.booleans())
    def open_session(self, *, doomed: bool) -> None:
        info = SessionInfo("alpha", 1, QUEUES, 0.001 if doomed else 600.0)
        session = self.run(self.store.open_session(info))
        (self.doomed if doomed else self.living).append(session)

    @rule(data=st.data(), limit=st.sampled_from((1, 2, 5, 300)), queues=st.permutations(QUEUES))
    def claim(self, data: st.DataObject, limit: int, queues: list[str]) -> None:
        session = data.draw(st.sampled_from(self.living + self.doomed + self.dead))
        queues = queues[: data.draw(st.integers(1, 2))]
        before = {
            job: one
            for job, one in self.jobs.items()
            if one.state is State.AVAILABLE and one.queue in queues and one.queue not in self.paused
        }
        room = self._room(before)
        if session in self.dead:
            # Where all wait for their limits nobody looks at the session.
            with pytest.raises(LeaseLost) if any(room.values()) else suppress(LeaseLost):
                assert self.run(self.store.claim(session, queues, limit)) == []
            return
        claimed: list[ClaimedJob] = self.run(self.store.claim(session, queues, limit))
        taken = [job.id for job in claimed]
        assert len(taken) == len(set(taken))
        assert set(taken) <= before.keys()
        priorities = [before[job].priority for job in taken]
        assert priorities == sorted(priorities)
        self._in_line(taken, before)
        started = Counter(before[job].line for job in taken)
        assert all(started[line] <= places for line, places in room.items())
        if self.replaced:
            # Entries that do not count any more are passed over, and have a place in this claim.
            assert bool(taken) == any(room.values())
        else:
            assert len(taken) == min(limit, sum(room.values()))
            left = [
                one.priority
                for job, one in before.items()
                if job not in set(taken) and started[one.line] < room[one.line]
            ]
            assert not left or not priorities or priorities[-1] <= min(left)
        for job in claimed:
            one = self.jobs[job.id]
            one.suspect = job.suspects is not None
            assert (job.queue, job.priority, job.max_attempts, job.attempt) == (
                one.queue, one.priority, one.max_attempts, one.spent + 1,
            )  # fmt: skip
            one.state, one.claimed, one.session = State.RUNNING, job, session

    def _room(self, before: dict[JobId, Expected]) -> Counter[str]:
        """How many jobs of each line may be claimed."""
        room = Counter(one.line for one in before.values())
        places = {one.line: one.places for one in before.values() if one.places is not None}
        for line, most in places.items():
            running = sum(
                one.state is State.RUNNING and one.line == line for one in self.jobs.values()
            )
            room[line] = min(room[line], most - running)
        return room

    def _in_line(self, taken: list[JobId], before: dict[JobId, Expected]) -> None:
        lanes = {(one.queue, one.priority, one.line) for one in before.values()}
        for lane in lanes:
            line = sorted(
                job
                for job, one in before.items()
                if (one.queue, one.priority, one.line) == lane and one.fresh
            )
            mine = [job for job in taken if job in set(line)]
            assert mine == line[: len(mine)]

    @precondition(lambda self: any(one.claimed for one in self.jobs.values()))
    @rule(
        data=st.data(),
        move=st.sampled_from([*ENDS, *BACK]),
        later=st.booleans(),
        count=st.sampled_from((1, 1, 3, 300)),
        keep=st.sampled_from((KEEP, KEEP, 0.0)),
    )
    def settle(
        self, data: st.DataObject, move: Move, count: int, keep: float, *, later: bool
    ) -> None:
        session = data.draw(
            st.sampled_from(sorted({one.session for one in self.jobs.values() if one.session}))
        )
        some = [one.claimed for one in self.of(session) if one.claimed][:count]
        assert self._settle(session, some, move, later=later, keep=keep) == []
        for job in some:
            self.old.append((session, job))
            one = self.jobs[job.id]
            if move in ENDS:
                one.ends(ENDS[move])
                if keep == 0.0:
                    del self.jobs[job.id]
                continue
            one.spent += move is Move.RETRY
            state = State.AVAILABLE if move is Move.RELEASE and not later else BACK[move]
            one.comes_back(state, due=not later)
        # Twice.
        assert self._settle(session, some, move, later=later, keep=keep) == sorted(
            job.id for job in some
        )

    def _settle(
        self,
        session: SessionId,
        jobs: list[ClaimedJob],
        move: Move,
        *,
        later: bool = False,
        keep: float = KEEP,
    ) -> list[JobId]:
        failed = move in {Move.RETRY, Move.DISCARD}
        refused: list[JobId] = self.run(
            self.store.settle(
                session,
                [
                    Settlement(
                        job.id,
                        job.lease,
                        move,
                        FAR if later and move in BACK else 0.0,
                        keep,
                        None,
                        error_json(job.attempt, "E", "e") if failed else None,
                        unique_key=job.unique_key,
                    )
                    for job in jobs
                ],
            )
        )
        return sorted(refused)

    @rule(data=st.data(), move=st.sampled_from([*ENDS, *BACK]))
    def settle_without_a_lease(self, data: st.DataObject, move: Move) -> None:
        """By a stranger, under a lease that never was, or under one that is over."""
        for job in [one.claimed for one in self.jobs.values() if one.claimed][:1]:
            for stranger in {*self.living, *self.doomed, *self.dead} - {self.jobs[job.id].session}:
                assert self._settle(stranger, [job], move) == [job.id]
            owner = self.jobs[job.id].session
            assert owner is not None
            forged = replace(job, lease=LeaseId(job.lease + 1_000_000))
            assert self._settle(owner, [forged], move) == [job.id]
        if self.old:
            session, job = data.draw(st.sampled_from(self.old))
            assert self._settle(session, [job], move) == [job.id]

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.pick(data)
        found = self.run(self.store.cancel([job or NOBODY, NOBODY]))
        if job is None:
            assert found == {}
            return
        one = self.jobs[job]
        if one.state is State.RUNNING:
            one.unwanted = True
        elif not one.state.finished:
            one.ends(State.CANCELLED)
        assert found == {job: one.state}

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        job = self.pick(data)
        found = self.run(self.store.retry([job or NOBODY]))
        one = self.jobs.get(job) if job else None
        other = self.holder(one.unique) if one and one.state.finished else None
        if one is None or other or one.state in {State.RUNNING, State.AVAILABLE}:
            assert found == []
            return
        assert found == [job]
        one.comes_back(State.AVAILABLE)
        one.spent = 0

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        job = self.pick(data)
        found = self.run(self.store.delete([job or NOBODY]))
        if job is None or self.jobs[job].state is State.RUNNING:
            assert found == []
            return
        assert found == [job]
        del self.jobs[job]

    @rule(queue=st.sampled_from(QUEUES), pause=st.booleans())
    def pause_or_resume(self, queue: str, *, pause: bool) -> None:
        changed = self.run(self.store.pause(queue) if pause else self.store.resume(queue))
        assert changed == (pause != (queue in self.paused))
        (self.paused.add if pause else self.paused.discard)(queue)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.living + self.dead))
        renewal = self.run(self.store.renew(session))
        assert renewal.alive == (session in self.living)
        unwanted = {
            job for job, one in self.jobs.items() if one.session == session and one.unwanted
        }
        assert renewal.cancel == unwanted

    @rule(data=st.data())
    def close_session(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.living + self.dead))
        self.run(self.store.close_session(session))
        for one in self.of(session):
            one.comes_back(State.AVAILABLE)
        if session in self.living:
            self.living.remove(session)
            self.dead.append(session)
            if not self.living:
                self.open_session(doomed=False)

    @rule()
    def rescue(self) -> None:
        found: dict[SessionId, Any] = {}

        def look() -> bool | None:
            found.update({one.session: one for one in self.run(self.store.rescue())})
            return True if len(found) >= len(self.doomed) else None

        until(look)
        assert found.keys() == set(self.doomed)
        for session in self.doomed:
            mine = {job: one for job, one in self.jobs.items() if one.session == session}
            begun = [one for one in mine.values() if not one.suspect]
            for one in mine.values():
                one.spent += begun == [one]
                if one.spent >= one.max_attempts and not one.unwanted:
                    one.ends(State.DISCARDED)
                else:
                    one.comes_back(State.AVAILABLE)
            for state, told in (
                (State.AVAILABLE, found[session].available),
                (State.DISCARDED, found[session].discarded),
            ):
                assert sorted(told) == sorted(job for job in mine if mine[job].state is state)
        self.dead += self.doomed
        self.doomed = []

    @rule(limit=st.sampled_from((1, 2, 1000)))
    def stage(self, limit: int) -> None:
        due = [one for one in self.jobs.values() if one.state in WAITING and one.due]
        staged = 0
        while staged < len(due):
            now = self.run(self.store.stage(limit))
            # A batch may be nothing but entries that do not count any more.
            more = self.replaced and now.next_due is not None and now.next_due <= 0
            assert now.staged > 0 or more, "due jobs are not staged"
            staged += now.staged
        assert staged == len(due)
        assert self.run(self.store.stage(limit)).staged == 0
        for one in due:
            one.comes_back(State.AVAILABLE)

    @rule(rounds=st.integers(1, 4), squeeze=st.booleans())
    def tidy(self, rounds: int, *, squeeze: bool) -> None:
        for _ in range(rounds):
            if squeeze:
                self.run(self.store.squeeze())
            self.run(self.store.tidy())

    # Invariants ------------------------------------------------------------------------------

    @invariant()
    def states_are_as_expected(self) -> None:
        found = {job.id: job for job in self.run(self.store.get(list(self.jobs)))}
        assert {job: found[job].state for job in found} == {
            job: one.state for job, one in self.jobs.items()
        }
        for job, one in self.jobs.items():
            if one.state in WAITING or one.state is State.AVAILABLE:
                assert found[job].attempt == one.spent
            assert found[job].cancel_requested == one.unwanted

    @invariant()
    def counts_are_as_expected(self) -> None:
        """A job that is there twice, or stays behind where it was, counts twice."""
        told: Counter[tuple[str, State]] = Counter()
        for queue in self.run(self.store.queues()):
            assert queue.paused == (queue.name in self.paused)
            told.update({(queue.name, state): n for state, n in queue.counts.items() if n})
        assert told == Counter((one.queue, one.state) for one in self.jobs.values())


def check(make: Callable[[], Place], searching: settings) -> None:
    """Look for a sequence of operations that a store does not stand."""
    # The annotation asks for a class; a function that makes a machine is documented, too.
    machine: Any = lambda: Machine(make)  # noqa: E731
    run_state_machine_as_test(machine, settings=searching)


@pytest.fixture
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every tidying turns the rings, and a mark whenever one is asked for."""
    monkeypatch.setattr("rota.store.postgres.counters.MARK_AGE", 0.0)
    monkeypatch.setattr("rota.store.postgres.clearing.REST", 0.0)
    for ring in ("LOG", "CURSOR", "LEASE", "TALLY", "LIMIT", "FINISHED"):
        monkeypatch.setattr(f"rota.store.postgres.rings.{ring}_SIZE", 0)


@pytest.fixture
def postgres(postgres_url: str, small_rings: None) -> Iterator[Callable[[], Place]]:
    """One database, emptied for each example."""
    del small_rings
    first = open_store(postgres_url)
    with closing(first.connect()) as connection:
        migrate(first, connection)
    lanes = cycle((1, 5000))
    with closing(psycopg.connect(postgres_url, autocommit=True)) as admin:

        def make() -> Place:
            # A store of its own: one remembers what is in its database.
            store = open_store(postgres_url)
            connection = store.connect()

            def close() -> None:
                connection.close()
                store.close()

            admin.execute(
                "TRUNCATE rota.log, rota.cursor, rota.session, rota.lot, rota.heartbeat, rota.lease,"
                " rota.cancel_request, rota.timer, rota.timer_mark, rota.tally, rota.tally_mark,"
                " rota.finished, rota.lane, rota.queue, rota.unique_key, rota.limit_key"
            )
            admin.execute(
                "INSERT INTO rota.timer_mark VALUES (0, '-infinity', 0, pg_current_snapshot())"
            )
            admin.execute(
                "INSERT INTO rota.tally_mark VALUES"
                " (0, DEFAULT, pg_current_snapshot(), 0, '{}', '{}', '{}', '{}')"
            )
            for ring in ("log", "cursor", "lease", "tally", "limit", "finished"):
                admin.execute(f"SELECT setval('rota.{ring}_turn', 0)")
            # Every other time as if there were so many lanes that only those in use are walked.
            admin.execute("SELECT setval('rota.lane_id_seq', %s)", (next(lanes),))
            return Place(store, connection, close)

        yield make


@pytest.fixture
def sqlite(tmp_path: Path) -> Callable[[], Place]:
    """A new file for each example."""

    def make() -> Place:
        store = open_store(f"sqlite:///{tmp_path}/{secrets.token_hex(8)}.db")
        connection = store.connect()
        migrate(store, connection)

        def close() -> None:
            connection.close()
            store.close()

        return Place(store, connection, close)

    return make


EXAMPLES = pytest.mark.parametrize("examples", [20, pytest.param(50, marks=pytest.mark.large)])


@EXAMPLES
def test_the_postgres_store(postgres: Callable[[], Place], examples: int) -> None:
    """The job log does what the oracle expects."""
    check(postgres, settings(SETTINGS, max_examples=examples))


@EXAMPLES
def test_the_sqlite_store(sqlite: Callable[[], Place], examples: int) -> None:
    """The rows in a file do what the oracle expects."""
    check(sqlite, settings(SETTINGS, max_examples=examples))


def test_a_store_that_forgets_is_found_out(
    postgres: Callable[[], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a truncation that does not look for unclaimed rows."""
    monkeypatch.setattr(rings, "UNCLAIMED", Statement("none", "SELECT false"))
    # Without making the example small: that it is found is enough.
    searching = settings(SETTINGS, max_examples=200, phases=[Phase.generate])
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        check(postgres, settings(searching, report_multiple_bugs=False))
