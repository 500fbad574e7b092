"""The states of a job and every move between them.

Two rules. Every transition is in `MOVES`: a move that is not there does not happen. And this file
knows no database: the stores obey it, the conformance suite compares them with it, and the diagram
in the documentation is drawn from it.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "scheduled"
    """Waits for its time: it was enqueued with a delay, snoozed, or comes round again."""
    AVAILABLE = "available"
    """May be claimed by any worker of its queue."""
    RUNNING = "running"
    """Is leased by a worker: running, or about to."""
    RETRYABLE = "retryable"
    """Its last attempt failed; it waits for the next one."""
    COMPLETED = "completed"
    """Ended well."""
    DISCARDED = "discarded"
    """Given up, and kept for a person to look at: the dead letters."""
    CANCELLED = "cancelled"
    """Stopped on request."""

    @property
    def finished(self) -> bool:
        """Whether nothing more happens to the job by itself."""
        return self in FINISHED


FINISHED = frozenset({State.COMPLETED, State.DISCARDED, State.CANCELLED})


class Move(StrEnum):
    """What can happen to a job."""

    STAGE = "stage"
    CLAIM = "claim"
    COMPLETE = "complete"
    RETRY = "retry"
    SNOOZE = "snooze"
    AGAIN = "again"
    DISCARD = "discard"
    CANCEL = "cancel"
    RELEASE = "release"
    RESCUE = "rescue"
    RETRY_BY_HAND = "retry by hand"


MOVES: dict[State, dict[Move, frozenset[State]]] = {
    State.SCHEDULED: {
        Move.STAGE: frozenset({State.AVAILABLE}),
        Move.CANCEL: frozenset({State.CANCELLED}),
        Move.RETRY_BY_HAND: frozenset({State.AVAILABLE}),
    },
    State.AVAILABLE: {
        Move.CLAIM: frozenset({State.RUNNING}),
        Move.CANCEL: frozenset({State.CANCELLED}),
    },
    State.RUNNING: {
        Move.COMPLETE: frozenset({State.COMPLETED}),
        Move.RETRY: frozenset({State.RETRYABLE}),
        Move.SNOOZE: frozenset({State.SCHEDULED}),
        Move.AGAIN: frozenset({State.SCHEDULED}),
        Move.DISCARD: frozenset({State.DISCARDED}),
        Move.CANCEL: frozenset({State.CANCELLED}),
        Move.RELEASE: frozenset({State.AVAILABLE, State.SCHEDULED}),
        # A rescued job has spent an attempt; if that was its last, it is discarded.
        Move.RESCUE: frozenset({State.AVAILABLE, State.DISCARDED, State.CANCELLED}),
    },
    State.RETRYABLE: {
        Move.STAGE: frozenset({State.AVAILABLE}),
        Move.CANCEL: frozenset({State.CANCELLED}),
        Move.RETRY_BY_HAND: frozenset({State.AVAILABLE}),
    },
    State.COMPLETED: {Move.RETRY_BY_HAND: frozenset({State.AVAILABLE})},
    State.DISCARDED: {Move.RETRY_BY_HAND: frozenset({State.AVAILABLE})},
    State.CANCELLED: {Move.RETRY_BY_HAND: frozenset({State.AVAILABLE})},
}


def allowed(state: State, move: Move) -> frozenset[State]:
    """The states that `move` may lead to from `state`; empty where the move is refused."""
    return MOVES[state].get(move, frozenset())
