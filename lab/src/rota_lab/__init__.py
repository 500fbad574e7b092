"""The queue lab: the queue designs of five articles, side by side with Rota's own store.

It teaches and it proves: each design runs as its article has it, on a real database, and an
experiment draws what the article drew. It knows Rota by its public API alone.

strategies/   one design each; `strategy` is what they share
experiments/  one question each; `experiment` is what they share
databases/    PostgreSQL, MariaDB, SQLite: connections and fresh databases
location      which database a queue is in
servers       where databases are made: given servers, or private ones
queue         one strategy's queue in a database of its own, and its workers
workers       worker processes
producer      the process that enqueues
shift         what a worker does with its jobs, and what it reports
expiry        after how long designs take a job away from its worker
work          what workers do with a job
protocol      which worker worked which job when, in a table
run           an experiment on strategies and databases, to a report
"""
