"""Judging a database's health: from the facts of `rota.store.health` to findings for people.

Everything here but `examine` is pure: facts in, findings out. The thresholds are constants of the
module that uses them.

finding    a finding and its severity
examine    gather the facts and judge them
schema     the version of Rota's tables, and the parts that could not be looked at
rights     the rights that a worker's role lacks
work       queues, workers, timers: both backends
flows      flows that stand still: both backends
horizon    holders of the oldest snapshot, and what they cost
waits      sessions that wait for locks on Rota's tables
tables     whether housekeeping frees space, dead rows, sizes
server     PostgreSQL itself: version, clock, connections, notifications
settings   harmful settings of PostgreSQL
file       a SQLite file
supervise  which open transactions `rota supervise` may end
amounts    durations, sizes and counts as people read them
"""
