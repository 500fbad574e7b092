"""Every state meets every move: the table's result, or no change at all."""

import pytest

from rota.model.states import MOVES, Move, State, allowed
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    Built,
    claim,
    in_state,
    open_session,
    record,
    rescued,
    settle,
    settlement,
)

SHORT = 0.02


def test_every_state_is_reached() -> None:
    """An enqueue or a move leads to each state, and there is none that jobs are never in."""
    reached = {end for moves in MOVES.values() for ends in moves.values() for end in ends}
    assert reached | {State.SCHEDULED, State.AVAILABLE} == set(State) == MOVES.keys()


def move_job(store: Store, connection: Connection, built: Built, state: State, move: Move) -> None:
    """Try a move on a job, with the lease that it has, had, or never had."""
    match move:
        case Move.STAGE:
            connection.run(store.stage(10))
        case Move.CLAIM:
            claim(store, connection, open_session(store, connection))
        case Move.RETRY_BY_HAND:
            connection.run(store.retry([built.id]))
        case Move.RESCUE:
            rescued(store, connection, built.session)
        case Move.CANCEL if state is not State.RUNNING:
            connection.run(store.cancel([built.id]))
        case _:
            settle(store, connection, built.session, settlement(built.job, move))


@pytest.mark.table
@pytest.mark.parametrize("move", list(Move))
@pytest.mark.parametrize("state", State)
def test_move(store: Store, connection: Connection, state: State, move: Move) -> None:
    """A move leads where the table of moves says, and what is not there does not happen."""
    silence = SHORT if move is Move.RESCUE else 600.0
    built = in_state(store, connection, state, timeout=silence, headers='{"trace":"a"}')
    before = record(store, connection, built.id)
    move_job(store, connection, built, state, move)
    after = record(store, connection, built.id)
    if ends := allowed(state, move):
        assert after.state in ends
    else:
        assert after == before
    # What identifies a job never changes.
    assert (after.id, after.task, after.args, after.queue) == (
        before.id,
        before.task,
        before.args,
        before.queue,
    )
    assert after.enqueued_at == before.enqueued_at
    assert after.headers == before.headers == {"trace": "a"}


@pytest.mark.parametrize("delay", [0.0, 60.0])
def test_release_has_two_ends(store: Store, connection: Connection, delay: float) -> None:
    """A release leads to both of its states: at once, and later."""
    built = in_state(store, connection, State.RUNNING)
    ended = settlement(built.job, Move.RELEASE, delay=delay)
    assert settle(store, connection, built.session, ended) == []
    expected = State.SCHEDULED if delay else State.AVAILABLE
    assert record(store, connection, built.id).state is expected
