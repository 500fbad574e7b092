-- Wake all sleeping workers of a queue: something came to it that this worker cannot run, and no
-- number tells which of them can. Rare: once for a settlement with such jobs.
SELECT pg_notify('rota', ' ' || %(wake)s::text)
