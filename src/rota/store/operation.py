"""An operation on the database, written once and run on any connection.

An operation is a generator: it yields what it wants done (a `Query`, a `Copy`), receives the rows
that came back, and returns its result. It never touches a connection, so the same operation runs
on Rota's own blocking connections and on a caller's, blocking or async (the model is psycopg 3's
I/O-free generators). A failed request is thrown into the generator at its `yield`.

    def pause(queue: str) -> Steps[bool]:
        rows = yield PAUSE(queue=queue)
        return bool(rows)
"""

import functools
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import Enum, Flag, auto
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

T = TypeVar("T")
P = ParamSpec("P")

Rows = Sequence[tuple[Any, ...]]
"""What a request gives back; empty where there is nothing to give."""


class Begin(Enum):
    """In what kind of transaction an operation runs on a connection of Rota's own.

    On a caller's connection it always runs inside whatever transaction the caller has.
    """

    NOTHING = "single statements: no transaction around them, each durable when it returns"
    READING = "single statements that only read"
    SNAPSHOT = "statements that only read, and see the same moment"
    DURABLE = "a transaction that is on disk when it returns"
    HASTY = "a transaction that a crash of the database server may undo; only repeatable work"


class Then(Flag):
    """Which sleepers an operation gives reason to wake once it is done.

    SQLite's connections wake the sleepers of their process by it. PostgreSQL's operations notify in
    their own transactions.
    """

    NOTHING = 0
    WORKERS = auto()
    """There may be something to claim, or to stage."""
    WAITERS = auto()
    """A job may have ended."""


class Statement:
    """One SQL statement from a file, named like its operation.

    The text uses the native named parameters of the backend's driver: `%(name)s` for psycopg,
    `:name` for SQLite. `numbered` is the same for drivers with `$1` parameters (asyncpg).
    """

    __slots__ = ("name", "numbered", "order", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        order: list[str] = []

        def number(match: re.Match[str]) -> str:
            if match[1] not in order:
                order.append(match[1])
            return f"${order.index(match[1]) + 1}"

        self.numbered = re.sub(r"%\((\w+)\)s", number, text).replace("%%", "%")
        self.order = tuple(order)

    def __call__(self, **params: object) -> "Query":
        """A request to run this statement with these parameters."""
        return Query(self, params)

    def __repr__(self) -> str:
        return f"<Statement {self.name}>"


def statement(package: str, name: str) -> Statement:
    """Read `sql/{name}.sql` of a backend's package; header comments are left out.

    The name is a folder and a file, `claim/claim_probe`; the statement is called like the file.
    """
    from importlib.resources import files

    source = (files(package) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("--")]
    return Statement(name.rpartition("/")[2], "\n".join(lines).strip().removesuffix(";"))


class Query(NamedTuple):
    """Run one statement and give back its rows. A tuple, since each operation makes some."""

    statement: Statement
    params: Mapping[str, object]


class Copy(msgspec.Struct, frozen=True):
    """Stream text rows into a table by PostgreSQL's COPY; gives back no rows.

    The blocks may be made while the server works on those before.
    """

    statement: Statement
    blocks: Iterable[str]


class Apart(msgspec.Struct, Generic[T], frozen=True):
    """Run another operation now, outside of the caller's transaction; gives back `[(result,)]`."""

    operation: "Operation[T]"


class Surroundings(NamedTuple):
    """Where the statements of an operation run; the one row that `Where` gives back.

    Attributes:
        inside: They are part of a transaction that may go on after the operation.
        copy: The connection can do what a `Copy` asks.
        notify: The transaction may notify other processes; PostgreSQL cannot prepare one (two-phase
            commit) that has done so.
        begun: The caller's transaction is open already; a driver may begin it with a change alone.
        tuned: The connection has Rota's settings also where no transaction sets them.
    """

    inside: bool = False
    copy: bool = False
    notify: bool = True
    begun: bool = True
    tuned: bool = False


class Where(msgspec.Struct, frozen=True):
    """Say where the statements of this operation run; gives back its `Surroundings`."""


Request = Query | Copy | Apart[Any] | Where
Steps = Generator[Request, Rows, T]


def with_apart(operation: "Operation[T]", run: "Callable[[Operation[Any]], Any]") -> "Operation[T]":
    """The same operation for a connection that can do nothing apart: `run` does it, and blocks."""
    return Stepped(operation.name, _with_apart(operation, run), operation.begin, operation.then)


def _with_apart(operation: "Operation[T]", run: "Callable[[Operation[Any]], Any]") -> Steps[T]:
    steps = operation.steps
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Apart):
                    given: Rows = [(run(request.operation),)]
                else:
                    given = yield request
            except BaseException as error:  # noqa: BLE001 - the steps decide what it means
                request = steps.throw(error)
            else:
                request = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


def inline(steps: Steps[T]) -> Steps[T]:
    """The same steps, but what they would have done apart is done among them, in their transaction."""
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Apart):
                    given: Rows = [((yield from request.operation.steps),)]
                else:
                    given = yield request
            except BaseException as error:  # noqa: BLE001 - the steps decide what it means
                request = steps.throw(error)
            else:
                request = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


def surroundings() -> Steps[Surroundings]:
    """Where the statements of the operation run that this is a step of."""
    [row] = yield Where()
    return Surroundings(*row)


T_co = TypeVar("T_co", covariant=True)


class Operation(Protocol[T_co]):
    """The steps of something that is done to the database, and the transaction they need."""

    @property
    def name(self) -> str:
        """Its name in the protocol."""
        ...

    @property
    def steps(self) -> Steps[T_co]:
        """What is to be done, one request after another."""
        ...

    @property
    def begin(self) -> Begin:
        """The kind of transaction it runs in."""
        ...

    @property
    def then(self) -> Then:
        """Which sleepers to wake after it."""
        ...


class Stepped(NamedTuple, Generic[T]):
    """An operation of as many steps as its generator has."""

    name: str
    steps: Steps[T]
    begin: Begin
    then: Then = Then.NOTHING


class Single(NamedTuple, Generic[T]):
    """An operation that is a single statement; it can be run without driving any steps.

    For the single enqueue: around a statement of some fifty microseconds a generator, its driver
    and what they touch cost ten.
    """

    name: str
    query: Query
    read: Callable[[Rows], T]

    @property
    def begin(self) -> Begin:
        """A single statement needs no transaction."""
        return Begin.NOTHING

    @property
    def then(self) -> Then:
        """It notifies in its statement."""
        return Then.NOTHING

    @property
    def steps(self) -> Steps[T]:
        """Its one step, for connections that drive all operations alike."""
        return _steps(self)


def _steps(single: Single[T]) -> Steps[T]:
    return single.read((yield single.query))


class Together(NamedTuple, Generic[T]):
    """An operation whose statements do not need each other's rows.

    They can go to the server at once, as a transaction that no frozen client can leave half done.
    A `lasting` one is on disk when it returns, and has freed its locks before it waited for that.
    """

    name: str
    queries: tuple[Query, ...]
    read: Callable[[Sequence[Rows]], T]
    lasting: bool = False
    then: Then = Then.NOTHING

    @property
    def begin(self) -> Begin:
        """The kind of transaction around its statements."""
        return Begin.DURABLE if self.lasting else Begin.HASTY

    @property
    def steps(self) -> Steps[T]:
        """One after the other, for connections that cannot send them at once."""
        return _one_by_one(self)


def _one_by_one(together: Together[T]) -> Steps[T]:
    found: list[Rows] = []
    for query in together.queries:
        found.append((yield query))  # noqa: PERF401 - a comprehension cannot yield
    return together.read(found)


def operation(
    begin: Begin, *, then: Then = Then.NOTHING
) -> Callable[[Callable[P, Steps[T]]], Callable[P, Operation[T]]]:
    """Make a generator function build operations of its name."""

    def wrap(function: Callable[P, Steps[T]]) -> Callable[P, Operation[T]]:
        @functools.wraps(function)
        def build(*args: P.args, **kwargs: P.kwargs) -> Operation[T]:
            return Stepped(function.__name__, function(*args, **kwargs), begin, then)

        return build

    return wrap
