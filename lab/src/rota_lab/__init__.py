"""The queue lab: the queue designs of five articles, side by side with Rota's own store.

It teaches and it proves: each design runs as its article has it, on a real database, and an
experiment draws what the article drew. It knows Rota by its public API alone.

strategies/   one design each; `strategy` says what one is
experiments/  one question each; `experiment` says what one is
databases/    PostgreSQL, MariaDB, SQLite: connections and fresh databases; `place` is where one is
servers       where databases are made: servers that are given, or private ones
queue         one strategy's queue in a database of its own, and who works on it
workers       worker processes; producers, the process that enqueues
shift         what a worker does with its jobs, and what is told of it
expiry        how long designs wait until they take a job away from its worker
protocol      who worked which job when, in a table
run           an experiment on strategies and databases, to a report
"""
