"""Who is measured when, and medians."""

from collections import Counter

import pytest

from benchmarks.peers import measurements
from benchmarks.peers.field import FIELD, chosen
from benchmarks.peers.measurements import DRAIN, DRAIN_2, HELD, LATENCY, MEASUREMENTS
from benchmarks.peers.samples import Sample, medians
from benchmarks.peers.turns import turns
from rota.errors import ConfigError


def test_each_peer_has_its_turn_in_each_round() -> None:
    """Once for each question, all peers before the next question."""
    plan = list(turns(3, [DRAIN, LATENCY], list(FIELD.values())))
    assert Counter((turn.round, turn.measurement, turn.peer.name) for turn in plan) == {
        (number, question, name): 1
        for number in (1, 2, 3)
        for question in (DRAIN, LATENCY)
        for name in FIELD
    }
    asked = [(turn.round, turn.measurement) for turn in plan]
    assert sorted(asked) == asked


def test_no_two_rounds_have_the_same_order() -> None:
    """For each question."""
    plan = list(turns(3, list(MEASUREMENTS), list(FIELD.values())))
    for question in MEASUREMENTS:
        orders = {
            tuple(turn.peer.name for turn in plan if (turn.round, turn.measurement) == (number, question))
            for number in (1, 2, 3)
        }  # fmt: skip
        assert len(orders) == 3


def test_what_a_peer_cannot_be_asked() -> None:
    """Two workers cannot read a queue of PgQ's, and Redis has no snapshots."""
    plan = {
        (turn.measurement, turn.peer.name)
        for turn in turns(1, [DRAIN_2, HELD], list(FIELD.values()))
    }
    everything = {(question, name) for question in (DRAIN_2, HELD) for name in FIELD}
    assert everything - plan == {(DRAIN_2, "pgq"), (HELD, "celery")}


def test_medians() -> None:
    """Of each figure over the rounds, without failures and what is not known."""
    values = (10.0, 1000.0, 20.0)
    samples = [
        Sample(round=number, measurement=DRAIN, peer="rota",
               figures={"per_second": value, "server": value if number < 3 else None})
        for number, value in enumerate(values, 1)
    ]  # fmt: skip
    failed = Sample(round=1, measurement=DRAIN, peer="huey", failure="lost 1 of 3 jobs")
    assert medians([*samples, failed]) == {
        (DRAIN, "rota"): {"per_second": 20.0, "server": 505.0},
        (DRAIN, "huey"): {},
    }


def test_choosing_peers() -> None:
    """By name, in the field's order; an unknown one is told which there are."""
    assert [peer.name for peer in chosen(["huey", "rota"])] == ["rota", "huey"]
    assert [peer.name for peer in chosen([])] == list(FIELD)
    with pytest.raises(ConfigError, match=r"'rotta' is no peer: name some of rota, rota-sqlite"):
        chosen(["rota", "rotta"])


def test_choosing_measurements() -> None:
    """By how their names begin."""
    assert measurements.chosen(["drain with"]) == [DRAIN, DRAIN_2]
    assert measurements.chosen([]) == list(MEASUREMENTS)
    with pytest.raises(ConfigError, match="begins with 'speed'"):
        measurements.chosen(["speed"])
