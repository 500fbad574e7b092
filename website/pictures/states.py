"""A job's states, with all `rota.model.states.MOVES`; a move without a way here cannot be drawn."""

from rota.model.states import FINISHED, MOVES, Move, State
from website.pictures.drawing import Drawing, Point

WIDE, HIGH = 108, 40

PLACES: dict[State, Point] = {
    # The left upper corner.
    State.SCHEDULED: (20, 96),
    State.AVAILABLE: (262, 96),
    State.RUNNING: (262, 226),
    State.RETRYABLE: (20, 226),
    State.COMPLETED: (20, 398),
    State.DISCARDED: (216, 398),
    State.CANCELLED: (412, 398),
}
KINDS = {
    State.COMPLETED: "good",
    State.DISCARDED: "bad",
    State.RUNNING: "blue",
    State.AVAILABLE: "warm",
}
WAYS: dict[tuple[State, State], tuple[tuple[Point, ...], Point, str]] = {
    # Through which points, where its words are, and whether that is their start, middle or end.
    (State.SCHEDULED, State.AVAILABLE): (((128, 112), (262, 112)), (195, 106), "middle"),
    (State.AVAILABLE, State.RUNNING): (((300, 136), (300, 226)), (294, 168), "end"),
    (State.RUNNING, State.AVAILABLE): (((340, 226), (340, 136)), (348, 184), "start"),
    (State.RUNNING, State.SCHEDULED): (
        ((280, 226), (280, 196), (46, 196), (46, 136)),
        (58, 190),
        "start",
    ),
    (State.RUNNING, State.RETRYABLE): (((262, 252), (128, 252)), (195, 246), "middle"),
    (State.RETRYABLE, State.AVAILABLE): (
        ((20, 246), (8, 246), (8, 66), (290, 66), (290, 96)),
        (150, 60),
        "start",
    ),
    (State.RUNNING, State.COMPLETED): (
        ((282, 266), (282, 340), (74, 340), (74, 398)),
        (178, 334),
        "middle",
    ),
    (State.RUNNING, State.DISCARDED): (((306, 266), (306, 398)), (313, 360), "start"),
    (State.RUNNING, State.CANCELLED): (((370, 246), (440, 246), (440, 398)), (434, 290), "end"),
    (State.AVAILABLE, State.CANCELLED): (((370, 116), (466, 116), (466, 398)), (460, 110), "end"),
    (State.SCHEDULED, State.CANCELLED): (
        ((104, 96), (104, 80), (492, 80), (492, 398)),
        (486, 74),
        "end",
    ),
    (State.RETRYABLE, State.CANCELLED): (
        ((74, 266), (74, 306), (422, 306), (422, 398)),
        (86, 300),
        "start",
    ),
}
"""All but those of jobs that are retried by hand after their end, which are one arrow."""


def drawn() -> str:
    """The picture."""
    picture = Drawing(540, 484, "The states of a job, and what moves it from one to another")
    arrows: dict[tuple[State, State], list[Move]] = {}
    for state, moves in MOVES.items():
        for move, targets in moves.items():
            for target in targets:
                arrows.setdefault((state, target), []).append(move)
    after_the_end = {way: moves for way, moves in arrows.items() if way[0] in FINISHED}
    if set(after_the_end) != {(state, State.AVAILABLE) for state in FINISHED}:
        message = f"a way is missing in WAYS: {after_the_end}"
        raise KeyError(message)
    for way, why in arrows.items():
        if way not in after_the_end:
            points, at, anchor = WAYS[way]
            picture.arrow(*points, says=", ".join(why), at=at, anchor=anchor)
    picture.text((196, 32), "enqueue", kind="strong", anchor="middle")
    picture.arrow((160, 28), (74, 28), (74, 96))
    picture.arrow((232, 28), (326, 28), (326, 96))
    picture.box((8, 386), (524, 88), kind="frame")
    picture.arrow(
        (518, 386), (518, 50), (352, 50), (352, 96),
        says=Move.RETRY_BY_HAND, at=(512, 44), anchor="end", kind="dashed",
    )  # fmt: skip
    picture.text(
        (270, 462), "finished: kept for a while, then pruned", kind="small", anchor="middle"
    )
    for state in State:
        picture.box(PLACES[state], (WIDE, HIGH), [state], kind=KINDS.get(state, "box"))
    return picture.svg()
