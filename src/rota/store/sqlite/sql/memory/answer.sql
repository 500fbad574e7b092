-- Append how a wait of a job has ended.
-- Locks: the database.
INSERT INTO rota_memory (job, at, kind, name, ref, value)
VALUES (:job, (julianday('now') - 2440587.5) * 86400.0, 'answer', :name, :ref, :value);
