"""Judging a database's health: from the facts of `rota.store.health` to findings for people.

Everything here but `examine` is pure: facts in, findings out. The thresholds are constants of the
module that uses them.

finding    a finding, and how bad it is
examine    gather the facts, judge them all
schema     the version of Rota's tables, and what could not be looked at
rights     what the role lacks to be a worker's
work       queues, workers, timers: both backends
horizon    who holds the oldest snapshot, and what it costs
waits      who waits for locks on Rota's tables
tables     the rings, dead rows, sizes
server     PostgreSQL itself: version, clock, connections, notifications
settings   PostgreSQL's settings that hurt
file       a SQLite file
supervise  which open transactions shall be ended
amounts    durations, sizes and counts as people read them
"""
