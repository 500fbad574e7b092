"""The diagram of a job's states, drawn from `rota.model.states.MOVES`.

`python -m tests.docs.diagram` writes it into docs/guarantees.md.
"""

import re

from rota.model.states import FINISHED, MOVES, Move, State
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
DIAGRAM = re.compile(
    r"(?<=<!-- states: drawn by tests/docs/diagram.py -->\n).*?(?=<!-- /states -->)", re.DOTALL
)


def drawn() -> str:
    """The diagram as a Mermaid block."""
    arrows: dict[tuple[State, State], list[Move]] = {}
    for state, moves in MOVES.items():
        for move, targets in moves.items():
            for target in sorted(targets, key=list(State).index):
                arrows.setdefault((state, target), []).append(move)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {state}: enqueue" for state in (State.SCHEDULED, State.AVAILABLE)]
    lines += [
        f"    {state} --> {target}: {', '.join(moves)}" for (state, target), moves in arrows.items()
    ]
    lines += [f"    {state} --> [*]: prune or delete" for state in State if state in FINISHED]
    return "\n".join([*lines, "```", ""])


def written(page: str) -> str:
    """The page with the diagram in it."""
    return DIAGRAM.sub(lambda _: drawn(), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
