-- Say whose connection this is, which may have the watch: a lock that nothing waits for.
SELECT pg_advisory_lock_shared(7682008, (%(session)s::int8 %% 2147483648)::int4)
