"""`make swarm ARGS="--seconds 600 --seed 7"`, or `python -m tests.swarm`.

The exit status is 1 if the judge complains of anything.

plan       which faults happen when: of the seed alone
faults     what each kind of them does, to the crew, the cluster, its disk or its clock
crew       the processes: worker and producer, with the tasks of one app, and a proxy for each
ledger     what all of them write down
story      what the ledger tells, put in order
audit      looks into the database while work goes on
facts      what the database says at the end
judge      the verdict, of story and facts
swarm      all of this from begin to end
"""

import argparse
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.status import Status

from tests.swarm import mutants
from tests.swarm.plan import SHARES, Fault, drawn
from tests.swarm.swarm import TASKS, Outcome, Swarm


def main() -> int:
    """Run a swarm; the exit status."""
    given = _arguments()
    console = Console(highlight=False)
    if given.mutant:
        names = [*mutants.TABLES] if given.mutant == "all" else [given.mutant]
        survived = [name for name in names if not mutants.caught(name, console)]
        return int(bool(survived))
    first = random.randrange(2**32) if given.seed is None else given.seed
    outcomes = [_run(seed, given, console) for seed in range(first, first + given.runs)]
    if given.runs > 1:
        jobs = sum(outcome.jobs for outcome in outcomes)
        faults = sum(sum(outcome.faults.values()) for outcome in outcomes)
        well = sum(not outcome.wrong for outcome in outcomes)
        console.print(f"{given.runs} runs, {well} of them well: {jobs} jobs, {faults} faults")
    return int(any(outcome.wrong for outcome in outcomes))


def _run(seed: int, given: argparse.Namespace, console: Console) -> Outcome:
    above = given.folder or Path(tempfile.gettempdir())
    folder = above / f"rota-swarm-{seed}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    plan = list(drawn(seed, given.seconds, given.faults))
    _write(folder / "plan", seed, given.seconds, plan)
    console.print(
        f"Seed {seed}: {len(plan)} faults in {given.seconds:g} seconds; plan, ledger and logs are in {folder}",
        soft_wrap=True,
    )
    with console.status("beginning") as status:
        outcome = Swarm(
            seed, plan, given.seconds, folder, given.rate, given.tasks, given.long, given.patience,
            given.before, _Shown(status),
        ).run()  # fmt: skip
    _tell(console, seed, outcome)
    return outcome


class _Shown:
    """One line about what goes on; nothing but the line where there is no terminal."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._began = time.monotonic()

    def __call__(self, what: str, left: float) -> None:
        passed = time.monotonic() - self._began
        self._status.update(f"{passed:5.0f} s  next in {left:4.1f} s: {what}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.swarm")
    parser.add_argument("--seconds", type=float, default=60.0, help="so long faults happen")
    parser.add_argument("--seed", type=int, help="of the plan, and of what producers do")
    parser.add_argument(
        "--rate", type=float, default=250.0, metavar="JOBS", help="a second, to be enqueued"
    )
    parser.add_argument(
        "--patience", type=float, default=240.0, metavar="SECONDS", help="for the last jobs to end"
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="so many, of this seed and the next ones"
    )
    parser.add_argument("--folder", type=Path, help="where the folders of the runs shall be")
    parser.add_argument(
        "--before", metavar="REVISION",
        help="begin with the tables and the code of this one, and deploy today's halfway",
    )  # fmt: skip
    parser.add_argument(
        "--faults", nargs="*", choices=SHARES, default=[*SHARES], metavar="KIND",
        help=f"only these: {', '.join(SHARES)}",
    )  # fmt: skip
    parser.add_argument(
        "--tasks", nargs="*", choices=TASKS, default=TASKS, metavar="TASK",
        help=f"only jobs of these: {', '.join(TASKS)}",
    )  # fmt: skip
    parser.add_argument(
        "--long", type=int, default=31, metavar="COUNT",
        help="of so many jobs with a limit one takes ten seconds",
    )  # fmt: skip
    parser.add_argument(
        "--mutant",
        choices=[*mutants.TABLES, "all"],
        help="find this one, which is in a copy of the tree",
    )
    return parser.parse_args()


def _write(file: Path, seed: int, seconds: float, plan: Sequence[Fault]) -> None:
    lines = [f"seed {seed}, {seconds:g} seconds", *map(str, plan)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tell(console: Console, seed: int, outcome: Outcome) -> None:
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.faults.items()))
    console.print(
        f"{outcome.jobs} jobs, {outcome.runs} runs, {sum(outcome.faults.values())} faults: {counted}"
    )
    if outcome.missed:
        missed = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.missed.items()))
        console.print(f"not possible when their time came: {missed}")
    largest = sorted(outcome.facts.sizes.items(), key=lambda item: -item[1])[:3]
    console.print(
        "largest tables: " + ", ".join(f"{name} {size // 1024} kB" for name, size in largest)
    )
    for wrong in outcome.wrong:
        console.print(f"wrong: {wrong}", style="red", markup=False, soft_wrap=True)
    verdict = f"Seed {seed}: " + (
        f"{len(outcome.wrong)} things are wrong" if outcome.wrong else "all is well"
    )
    console.print(verdict, style="bold red" if outcome.wrong else "bold green")


if __name__ == "__main__":
    sys.exit(main())
