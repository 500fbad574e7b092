"""Mutants that a swarm has to find: `python -m tests.swarm --mutant holes`, or `--mutant all`.

Each is one or more of tests/mutants, applied to a copy of the tree, in which a short swarm runs.
`mutants.toml` says which, with a seed and the kinds of faults that bring it to light.
"""

import tempfile
import tomllib
from contextlib import ExitStack
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
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-swarm-mutant-"))
        copy = Copy(Path(folder), server="")
        for mutant in listed():
            if mutant.name in table["mutants"]:
                stack.enter_context(copy.changed(mutant))
        status, said = copy.run(
            "-m", "tests.swarm", f"--seed={table['seed']}", f"--seconds={table['seconds']}", "--patience=20",
            *table.get("options", ()), "--faults", *table["faults"],
            seconds=table["seconds"] + ENDING,
        )  # fmt: skip
    console.print(said, markup=False, soft_wrap=True)
    told = [line for line in said.splitlines() if line.startswith("wrong: ")]
    found = status == 1 and any(table["wrong"] in line for line in told)
    verdict = "is caught" if found else "SURVIVED"
    console.print(f"{name} {verdict}", style="bold green" if found else "bold red")
    return found
