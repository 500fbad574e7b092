"""A mutant: one piece of Rota taken out or changed, and the tests that must notice.

They stand in the TOML files beside this one, a file for each concern and a table for each mutant:

    [no-holes]
    breaks = "What commits late is handed out."    # the promise that does not hold any more
    file = "store/postgres/sql/claim/claim.sql"    # below src/rota
    find = "AND running.xid < reached.xid"         # from code, not from comments, and short
    put = "AND false"                              # nothing, if this is left out
    times = 1                                      # how often `find` is there, if not once
    tests = ["store/postgres/test_order.py::test_holes_disappear"]    # below tests; few and quick
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutant.

    Attributes:
        name: Its file and its table, such as "claim.no-holes".
        breaks: The promise that does not hold any more.
        file: What is changed, from the root.
        find: The text that is replaced.
        put: What replaces it.
        times: How often the text is there.
        tests: The tests of which one must fail, as pytest names them, from the root.
    """

    name: str
    breaks: str
    file: str
    find: str
    put: str
    times: int
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The file's text with the change; SQL without its comments, which may say the same.

        Raises:
            ValueError: The text is not there, or not as often as it should be.
        """
        if self.file.endswith(".sql"):
            lines = source.splitlines(keepends=True)
            source = "".join(line for line in lines if not line.lstrip().startswith("--"))
        found = source.count(self.find)
        if found != self.times:
            message = f"its text is {found} times in {self.file}, not {self.times}: {self.find!r}"
            raise ValueError(message)
        return source.replace(self.find, self.put)


def listed() -> list[Mutant]:
    """All mutants."""
    return [
        _mutant(f"{file.stem}.{name}", **table)
        for file in sorted(Path(__file__).parent.glob("*.toml"))
        for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()
    ]


def _mutant(
    name: str, *, breaks: str, file: str, find: str, tests: list[str], put: str = "", times: int = 1
) -> Mutant:
    below = tuple(f"tests/{test}" for test in tests)
    return Mutant(name, breaks, f"src/rota/{file}", find, put, times, below)


def complaints(mutant: Mutant, root: Path = ROOT) -> list[str]:
    """Why a mutant cannot be tried: what it names is not there, or not any more."""
    found: list[object] = []
    try:
        source = (root / mutant.file).read_text(encoding="utf-8")
        changed = mutant.applied(source)
        if mutant.file.endswith(".py"):
            compile(changed, mutant.file, "exec")
    except (OSError, ValueError, SyntaxError) as error:
        found.append(error)
    for test in mutant.tests:
        file, _, function = test.partition("[")[0].partition("::")
        path = root / file
        if not path.is_file() or f"def {function}(" not in path.read_text(encoding="utf-8"):
            found.append(f"there is no test {test}")
    if not mutant.tests or mutant.find == mutant.put:
        found.append("it changes nothing, or names no test")
    return [f"{mutant.name}: {one}" for one in found]
