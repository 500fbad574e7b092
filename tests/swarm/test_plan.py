"""The plan of faults."""

from tests.swarm.faults import KINDS
from tests.swarm.plan import LONGEST, SHARES, drawn


def test_of_a_seed_alone() -> None:
    """The same seed gives the same plan, another seed another one."""
    plans = [[*drawn(seed, 600.0, [*SHARES])] for seed in (7, 7, 8)]
    assert plans[0] == plans[1] != plans[2]


def test_of_ten_minutes() -> None:
    """So many faults that ten runs have 2,700, of all kinds, in their order."""
    plans = [[*drawn(seed, 600.0, [*SHARES])] for seed in range(10)]
    assert sum(map(len, plans)) > 2700
    for plan in plans:
        assert [fault.at for fault in plan] == sorted(fault.at for fault in plan)
        assert all(0 < fault.seconds <= LONGEST and 0 <= fault.share < 1 for fault in plan)
    assert {fault.kind for plan in plans for fault in plan} == {*SHARES}


def test_chosen_kinds() -> None:
    """Only these happen; without any there are none."""
    assert {fault.kind for fault in drawn(7, 60.0, ["kill", "cut"])} == {"kill", "cut"}
    assert [*drawn(7, 60.0, [])] == []


def test_each_kind_happens() -> None:
    """What may be planned can be done."""
    assert {*KINDS} == {*SHARES}
