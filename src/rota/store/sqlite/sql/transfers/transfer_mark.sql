-- Write down for good that a transfer's jobs are stored here, as a key that no job has any more;
-- gives its token, unless that was done before.
-- Locks: the database, to the end of the transaction. Walks: rota_unique by its primary key.
INSERT INTO rota_unique (key, task, job, until, first_at, while_waiting, ended)
VALUES (:token, :task, 0, 9e999, (julianday('now') - 2440587.5) * 86400.0, 0, 1)
ON CONFLICT DO NOTHING
RETURNING key;
