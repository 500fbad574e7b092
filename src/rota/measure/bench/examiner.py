"""What each statement of an operation costs, in blocks and in time.

Operations run as they do for a worker, on a connection of Rota's own. Before each statement the
same one is examined by EXPLAIN ANALYZE, in the same transaction, and undone. What cannot be undone
is not examined: turning a ring, locking tables, emptying them, and waiting.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple, TypeVar

from rota.store.execute import drive
from rota.store.opening import open_store
from rota.store.operation import Apart, Begin, Operation, Query, Request, Rows, Surroundings, Where

T = TypeVar("T")

LASTING = re.compile(
    r"^(LISTEN|LOCK|TRUNCATE)|setval\('rota.\w+_(turn|begun)'|pg_sleep|advisory_(lock_shared|unlock_all)"
)
SEGMENT = re.compile(r"_\d$")
"""Ends the names of statements that each log segment has: together they are one statement."""

BEGIN = {
    Begin.READING: None,
    Begin.NOTHING: None,
    Begin.SNAPSHOT: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    Begin.DURABLE: "BEGIN",
    Begin.HASTY: "BEGIN",
}


class Cost(NamedTuple):
    """Of one run of a statement; blocks of the buffer cache."""

    blocks: float
    ms: float


class Examiner:
    """Runs operations on a PostgreSQL database, and examines their statements."""

    def __init__(self, url: str) -> None:
        self.store = open_store(url)
        self._connection: Any = self.store.connect()
        self._found: dict[str, list[Cost]] = {}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
        self.store.close()

    def forget(self) -> None:
        """Begin anew, with nothing examined."""
        self._found = {}

    def costs(self) -> Mapping[str, Cost]:
        """By statement: the median of the blocks, and the least time."""
        return {
            name: Cost(median(cost.blocks for cost in found), min(cost.ms for cost in found))
            for name, found in self._found.items()
        }

    def sql(self, text: str, *params: object) -> list[tuple[Any, ...]]:
        """Run a statement that is not examined."""
        cursor = self._connection.raw().execute(text, params or None)
        return list(cursor.fetchall()) if cursor.description else []

    def run(self, operation: Operation[T]) -> T:
        """Run an operation."""
        begin = BEGIN[operation.begin]
        if begin is None:
            return drive(operation.steps, self._execute)
        self.sql(begin)
        try:
            result = drive(operation.steps, self._execute)
        except BaseException:
            self.sql("ROLLBACK")
            raise
        self.sql("COMMIT")
        return result

    def _execute(self, request: Request) -> Rows:
        match request:
            case Query(statement, params):
                if not LASTING.search(statement.text):
                    self._examine(request)
                cursor = self._connection.raw().execute(statement.text, dict(params) or None)
                return cursor.fetchall() if cursor.description else ()
            case Apart(operation):
                return [(self.run(operation),)]
            case Where():
                return [Surroundings()]
            case _:
                raise TypeError(request)

    def _examine(self, query: Query) -> None:
        from psycopg import sql

        statement, raw = query.statement, self._connection.raw()
        name = sql.Identifier(f"examined_{statement.name}")
        values = [sql.Literal(query.params[key]) for key in statement.order]
        given = sql.SQL("({})").format(sql.SQL(", ").join(values)) if values else sql.SQL("")
        asked = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {} {}").format(name, given)
        # Prepared, as Rota's statements are after a few runs: the plan is made without the values.
        with self._undone():
            raw.execute(sql.SQL("PREPARE {} AS {}").format(name, sql.SQL(statement.numbered)))
            [(found,)] = raw.execute(asked).fetchall()
            raw.execute(sql.SQL("DEALLOCATE {}").format(name))
        cost = Cost(blocks(found[0]["Plan"]), found[0]["Execution Time"])
        self._found.setdefault(SEGMENT.sub("", statement.name), []).append(cost)

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        idle = self._connection.raw().info.transaction_status.name == "IDLE"
        self.sql("BEGIN" if idle else "SAVEPOINT examined")
        yield
        self.sql(
            "ROLLBACK" if idle else "ROLLBACK TO SAVEPOINT examined; RELEASE SAVEPOINT examined"
        )


def blocks(plan: Mapping[str, Any]) -> int:
    """The blocks that a plan touched, those of parts included that nothing else asks for."""
    return _own(plan) + sum(
        _own(part) for part in _parts(plan) if _is_aside(part) and not _is_asked(plan, part)
    )


def _own(plan: Mapping[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _is_aside(part: Mapping[str, Any]) -> bool:
    # They run at the end, and do not count for the whole.
    return part["Node Type"] == "ModifyTable" and "Subplan Name" in part


def _is_asked(plan: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    name = part["Subplan Name"].removeprefix("CTE ")
    return any(other.get("CTE Name") == name for other in _parts(plan))


def _parts(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for part in plan.get("Plans", ()):
        yield part
        yield from _parts(part)
