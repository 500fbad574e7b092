"""Several statements that go to the server in one piece, as one transaction.

psycopg's own pipeline gives its statements to the network one after another. A client that is
frozen between two of them leaves the server inside of a transaction, with its locks, and no timeout
of the server counts there. Here they leave in one piece, with the message that ends the transaction
(libpq's pipeline mode, by `psycopg.pq`). The client need not wait for them at once, either: it can
do something else while the server works.

Known weakness: rows that do not fit into the buffers on the way keep the server inside of the
transaction until the client reads them. Of a frozen client the rescue ends the connection
(`sql/sessions/rescue_end.sql`).

Parameters go as text, of the types that the statement casts them to, and rows come back as text: as
text a `real` is the number that was written.

psycopg makes the server forget all prepared statements when it sees a ROLLBACK, a DROP or an ALTER.
The server then refuses the first unknown statement and all after it, so they are prepared anew and
sent again.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus

from rota.store.operation import Query, Rows, Statement
from rota.store.postgres.statements import sql

# Not SET LOCAL: the server would warn, in its log too, that there was no BEGIN.
HASTY = Statement("hasty", "SELECT set_config('synchronous_commit', 'off', true)")
FLUSH = sql("claim/flush")

Raw = psycopg.Connection[tuple[Any, ...]]


class AtOnce:
    """Sends statements over one connection; remembers which the server knows there already."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._known: set[str] = set()
        self._generation = 0
        self._sent: Sequence[Query] | None = None
        self._answers = 0

    def run(self, queries: Sequence[Query], *, lasting: bool) -> list[Rows]:
        """Send the statements, unless they were sent already; the rows of each.

        Raises:
            psycopg.Error: That of the first statement that failed; none has done anything then.
                Where the flush of a `lasting` transaction or the connection fails, they may have.
        """
        if self._sent is not queries:
            self.send(queries, lasting=lasting)
        found, failed = self._read()
        if isinstance(failed, InvalidSqlStatementName) and not found:
            # By new names: statements that were prepared since then still have the old ones.
            self._generation += 1
            self._known.clear()
            self.send(queries, lasting=lasting)
            found, failed = self._read()
        if failed is not None:
            raise failed
        return found[1 : len(queries) + 1]

    def send(self, queries: Sequence[Query], *, lasting: bool) -> None:
        """Let the server begin with the statements; `run` has to be the next call.

        A `lasting` transaction is followed by another one, which waits until the first is on disk.
        """
        transactions = [[HASTY(), *queries], *([[FLUSH()]] if lasting else [])]
        self._prepare(query.statement for transaction in transactions for query in transaction)
        connection = self.raw.pgconn
        connection.enter_pipeline_mode()
        transformer = Transformer.from_context(self.raw)
        for transaction in transactions:
            for statement, params in transaction:
                values = [params[name] for name in statement.order]
                connection.send_query_prepared(
                    self._name(statement),
                    transformer.dump_sequence(values, [PyFormat.TEXT] * len(values)),
                )
            connection.pipeline_sync()
        self._depart(sum(map(len, transactions)) + len(transactions))
        self._sent = queries

    def _prepare(self, statements: Iterable[Statement]) -> None:
        new = {
            statement.name: statement
            for statement in statements
            if statement.name not in self._known
        }
        if new:
            connection = self.raw.pgconn
            connection.enter_pipeline_mode()
            for statement in new.values():
                text = statement.numbered.encode(self.raw.info.encoding)
                connection.send_prepare(self._name(statement), text)
            connection.pipeline_sync()
            self._depart(len(new) + 1)
            learnt, failed = self._read()
            # Statements prepared before a failure stay, although their transaction does not.
            self._known.update(islice(new, len(learnt)))
            if failed is not None:
                raise failed

    def _depart(self, answers: int) -> None:
        self._answers = answers
        self.raw.wait(generators.send(self.raw.pgconn))

    def _read(self) -> tuple[list[Rows], psycopg.Error | None]:
        """The rows of each statement that was sent, up to one that failed, and its error."""
        self._sent = None
        connection = self.raw.pgconn
        transformer = Transformer.from_context(self.raw)
        found: list[Rows] = []
        failed: psycopg.Error | None = None
        for _ in range(self._answers):
            result = self.raw.wait(generators.fetch_many(connection))[0]
            match result.status:
                # A flush after a failure is a transaction of its own and succeeds.
                case ExecStatus.TUPLES_OK if failed is None:
                    transformer.set_pgresult(result)
                    found.append(transformer.load_rows(0, result.ntuples, tuple))
                case ExecStatus.COMMAND_OK if failed is None:
                    found.append(())
                case ExecStatus.FATAL_ERROR if failed is None:
                    failed = error_from_result(result, encoding=self.raw.info.encoding)
        connection.exit_pipeline_mode()
        return found, failed

    def _name(self, statement: Statement) -> bytes:
        return f"rota_{self._generation}_{statement.name}".encode()
