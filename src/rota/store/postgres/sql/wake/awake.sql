-- Say that the worker of this connection is not asleep: its session holds no other advisory locks.
SELECT pg_advisory_unlock_all()
