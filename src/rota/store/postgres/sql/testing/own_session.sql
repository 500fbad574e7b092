-- A session for the jobs of this transaction: without signs of life, since no rescue sees it. Locks
-- nothing but its own row.
INSERT INTO rota.session (host, pid, queues, timeout) VALUES ('test', %(pid)s::int4, '{}', interval '1 day')
RETURNING id
