-- Write down for good that a transfer's jobs are stored here, as a key that no job has any more;
-- gives its token, unless that was done before. Waits for another transaction that stores the same
-- transfer.
-- Locks: the new row. Walks: unique_key by its primary key.
INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)
VALUES (0, 'infinity', 0, 0, false, 'ended', %(task)s, %(token)s)
ON CONFLICT (key, task) DO NOTHING
RETURNING key
