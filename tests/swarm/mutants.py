"""Mutants that a swarm has to find: `python -m tests.swarm --mutant holes`, or `--mutant all`.

Each is one of tests/mutants, applied to a copy of the tree, in which a short swarm runs. `mutants.toml` says
which, with a seed and the kinds of faults that bring it to light.
"""

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.mutants.mutant import listed
from tests.mutants.trial import Copy

TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""What is said of each, by its name."""

ENDING = 240.0
"""Seconds that a swarm may take beyond its own."""


def caught(name: str, console: Console) -> bool:
    """Whether the swarm finds a mutant; says what it found."""
    table = TABLES[name]
    [mutant] = [one for one in listed() if one.name == table["mutant"]]
    with tempfile.TemporaryDirectory(prefix="rota-swarm-mutant-") as folder:
        copy = Copy(Path(folder), server="")
        with copy.changed(mutant):
            status, said = copy.run(
                "-m", "tests.swarm", f"--seed={table['seed']}", f"--seconds={table['seconds']}",
                f"--rate={table.get('rate', 250)}", "--patience=20", "--faults", *table["faults"],
                seconds=table["seconds"] + ENDING,
            )  # fmt: skip
    console.print(said, markup=False, soft_wrap=True)
    found = status == 1 and "wrong: " in said
    verdict = "is caught" if found else "SURVIVED"
    console.print(
        f"{name} ({mutant.breaks}) {verdict}", style="bold green" if found else "bold red"
    )
    return found
