-- Say that the worker of this connection is not asleep, and has no watch: its session holds no
-- other advisory locks. Then wake the others of its group: the watch is free.
SELECT pg_advisory_unlock_all(), pg_notify('rota', 'watch ' || %(group)s::int4)
