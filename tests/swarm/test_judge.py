"""The judge: it notices each kind of fault in the ledger and the database, and no excused one."""

import pytest

from tests.swarm.facts import Facts
from tests.swarm.judge import LARGEST, complaints
from tests.swarm.ledger import Line
from tests.swarm.story import told

WELL = """
0 1 tried 1 3 single commit
1 1 sure 1 3
2 7 start a 1 1 501 single:4
3 7 end a
4 8 start a 2 1 502 single:4
5 8 end a
6 7 start b 3 1 503 single:4
7 7 end b
"""


def lines(text: str) -> list[Line]:
    """A ledger, each line with the moment and the process before it."""
    rows = [line.split() for line in text.split("\n") if line]
    return [Line(float(at), int(pid), what, tuple(words)) for at, pid, what, *words in rows]


def judged(text: str, facts: Facts | None = None) -> list[str]:
    """What the judge complains of."""
    return complaints(told(sorted(lines(text))), facts or Facts())


def one(text: str, facts: Facts | None = None) -> str:
    """The only complaint."""
    [said] = judged(text, facts)
    return said


def test_all_is_well() -> None:
    """Jobs that were acknowledged and done, one after another."""
    assert judged(WELL) == []


def test_a_lost_job() -> None:
    """It was acknowledged and not done, or begun and not ended; excused in a tail that was lost."""
    more = "8 1 tried 4 2 quick commit\n9 1 sure 4 2\n10 7 start c 5 1 505 -\n"
    assert one(WELL + more).startswith("2 jobs acknowledged and never done, such as 4 ")
    assert judged(WELL + more + "9.5 2 tail 1.0") == []
    assert judged(WELL + more + "8.5 2 tail 1.0") == []
    assert judged(WELL + more + "7.5 2 tail 1.0") == judged(WELL + more)
    assert judged(WELL + "8 1 tried 4 2 quick commit\n") == []


def test_a_job_of_a_rollback() -> None:
    """It ran though it never was."""
    more = "8 1 tried 4 1 quick commit\n9 1 never 4 1\n"
    assert judged(WELL + more) == []
    assert "1 jobs rolled back and run" in one(WELL + more + "10 7 start c 4 1 504 -\n11 7 end c")


def test_a_number_with_two_jobs() -> None:
    """An enqueue whose acknowledgement was lost is there once at the most."""
    more = "8 1 tried 4 1 quick alone\n9 7 start c 4 1 504 -\n10 7 end c\n"
    assert judged(WELL + more) == []
    twice = WELL + more + "11 2 fault cut 5\n12 7 start d 4 1 505 -\n13 7 end d\n"
    assert "stored twice" in one(twice)


def test_done_again() -> None:
    """A job runs again where a fault is the reason."""
    more = "8 1 tried 4 1 quick alone\n9 7 start c 4 1 504 -\n10 7 end c\n14 8 start c 4 1 504 -\n15 8 end c\n"
    assert "done twice without a reason" in one(WELL + more)
    assert judged(WELL + more + "11 2 dead 9") == []


@pytest.mark.parametrize(("fate", "effects", "fine"), [
    ("sure", 1, True), ("sure", 0, False), ("sure", 2, False),
    ("never", 0, True), ("never", 1, False),
    ("", 0, True), ("", 1, True), ("", 2, False),
])  # fmt: skip
def test_effects(fate: str, effects: int, *, fine: bool) -> None:
    """Exactly one where the enqueue was acknowledged, none where it was rolled back."""
    text = "1 1 tried 4 1 charge commit\n"
    text += f"2 1 {fate} 4 1\n" if fate else ""
    text += "3 7 start c 4 1 504 -\n4 7 end c\n" if fate == "sure" else ""
    said = judged(text, Facts(effects={4: effects} if effects else {}))
    assert (said == []) is fine
    assert fine or "not with exactly one effect" in said[0]


def test_a_commit_of_unknown_outcome() -> None:
    """The handler was told of a lost connection, and the effect is there."""
    text = "1 1 tried 4 1 charge commit\n2 1 sure 4 1\n3 7 start c 4 1 504 -\n4 7 left c\n"
    assert judged(text, Facts(effects={4: 1})) == []
    assert "not with exactly one effect" in one(text)


OVERLAP = """
0 1 tried 4 2 crowd rollback
2 7 start c 4 1 504 single:4
6 8 start c 5 1 505 single:4
8 8 end c
9 7 end c
"""


def test_a_limit_that_is_passed() -> None:
    """Runs of living workers count, until they end, or it is known that their worker cannot go on."""
    assert "single:4: 2 at once, 1 allowed" in one(OVERLAP)
    for excuse in ("5 2 dead 7", "5 7 lost", "3 2 away 7 4.0", "5 2 moved 1.0", "5 2 tail 1.0"):
        assert judged(OVERLAP + excuse) == [], excuse
    for other in ("7 2 dead 8", "0 7 lost", "1 2 away 8 2.0", "7 7 left c"):
        assert judged(OVERLAP + other) != [], other
    assert judged(OVERLAP.replace("single:4", "crowd:4")) == []


def test_the_order_of_a_key() -> None:
    """Jobs that a hand committed one after another start in that order, if no fault intervenes."""
    swapped = WELL.replace("start a 1 1 501", "start a 2 1 502", 1).replace(
        "4 8 start a 2 1 502", "4 8 start a 1 1 501"
    )
    assert "started in another order" in one(swapped)
    assert judged(swapped + "1 2 fault cut 0.5") == []


def test_due_times() -> None:
    """Each due time of the cron entry between the first and the last has its job."""
    text = "".join(
        f"{at} 7 start {at} -{at} 1 {at} -\n{at}.5 7 end {at}\n" for at in (100, 102, 106)
    )
    assert "1 due times of the cron entry have no job: [104]" in one(text)
    assert judged(text + "103 7 start x -104 1 104 -\n103.5 7 end x") == []


def test_the_database() -> None:
    """What is left, discarded, miscounted or has grown."""
    assert "jobs are not finished" in one(WELL, Facts(left={"plain available": 1}))
    assert "were discarded" in one(WELL, Facts(discarded=["tests.swarm.tasks.quick"]))
    assert judged(WELL, Facts(discarded=["tests.swarm.tasks.poison"])) == []
    assert "tables are not empty" in one(WELL, Facts(rows={"lease": 1, "timer": 0}))
    assert "tables have grown" in one(WELL, Facts(sizes={"log_0": LARGEST + 1, "log_1": LARGEST}))


def test_counts() -> None:
    """They are compared; finished jobs are not, where the clock was set back."""
    for state, excused in (("available", False), ("completed", True)):
        facts = Facts(miscounted=[("told", "plain", state, 3)])
        assert "counters differ" in one(WELL, facts)
        assert (judged(WELL + "8 2 fault clock 1", facts) == []) is excused
