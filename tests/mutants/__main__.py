"""Trying the mutants: `make mutants`, or `python -m tests.mutants -k ring -v`.

First their tests run once without any of them, and must pass. Then each mutant is tried with its
own tests alone. The exit status is 1 if one survived, or could not be tried.
"""

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from rota.measure.servers import PostgresServer
from tests.fixtures.memory import MEMORY
from tests.mutants.mutant import Mutant, complaints, listed
from tests.mutants.trial import Copy, Trial, Verdict

CORES = os.cpu_count() or 1


def main() -> int:
    """Try mutants; the exit status."""
    given = _arguments()
    every = [one for one in listed() if not given.k or any(word in one.name for word in given.k)]
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-mutants-")))
        server = os.environ.get("ROTA_TEST_POSTGRES") or _server(stack)
        copies = [Copy(folder / str(number), server) for number in range(given.n)]
        possible = _healthy(_possible(every, copies[0]), copies[0])
        counted = Counter({Verdict.BROKEN: len(every) - len(possible)})
        for number, trial in enumerate(_tried(possible, copies), 1):
            counted[trial.verdict] += 1
            _tell(trial, f"{number}/{len(possible)}", verbose=given.v)
    parts = ", ".join(f"{counted[verdict]} {verdict}" for verdict in Verdict if counted[verdict])
    _say(f"{len(every)} mutants: {parts or 'none'}; {time.monotonic() - began:.0f} seconds")
    return int(counted[Verdict.RED] != len(every))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("-k", metavar="WORD", action="append", default=[], help="only these names")
    parser.add_argument("-n", metavar="COUNT", type=int, default=2 * CORES, help="so many at once")
    parser.add_argument("-v", action="store_true", help="say how the tests failed")
    return parser.parse_args()


def _server(stack: ExitStack) -> str:
    """A PostgreSQL for all of them."""
    folder = MEMORY and MEMORY / f"rota-mutants-{secrets.token_hex(8)}"
    return stack.enter_context(PostgresServer.start(folder=folder)).url


def _possible(mutants: list[Mutant], copy: Copy) -> list[Mutant]:
    """Those that can be tried; says why others cannot."""
    possible = []
    missing = copy.missing(_tests(mutants))
    for one in mutants:
        said = complaints(one)
        said += [f"{one.name}: there is no test {test}" for test in one.tests if test in missing]
        if said:
            _say("\n".join(said))
        else:
            possible.append(one)
    return possible


def _healthy(mutants: list[Mutant], copy: Copy) -> list[Mutant]:
    """Those whose tests pass without them; names the others."""
    tests = _tests(mutants)
    _say(f"{len(tests)} tests without a mutant …")
    failing = copy.failing(tests, CORES) if tests else set()
    healthy = []
    for one in mutants:
        wrong = [test for test in failing if {test, test.partition("[")[0]} & {*one.tests}]
        if wrong:
            _say(f"{one.name}: without it, too, {', '.join(wrong)} fails")
        else:
            healthy.append(one)
    return healthy


def _tests(mutants: list[Mutant]) -> list[str]:
    """The tests of these mutants, each once."""
    return sorted({test for one in mutants for test in one.tests})


def _tried(mutants: list[Mutant], copies: list[Copy]) -> Iterator[Trial]:
    """Each mutant on a copy that is free, in their order."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> Trial:
        copy = free.get()
        try:
            return copy.attempt(mutant)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(attempt, mutants)


def _tell(trial: Trial, number: str, *, verbose: bool) -> None:
    _say(f"{number:>7}  {trial.verdict:<8}  {trial.seconds:5.1f} s  {trial.mutant.name}")
    if verbose or trial.verdict is not Verdict.RED:
        _say(f"{'':28}{trial.mutant.breaks}\n{'':28}{trial.why}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
