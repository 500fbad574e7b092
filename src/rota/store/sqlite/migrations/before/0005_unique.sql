-- Unique jobs, and subjects that come round.

ALTER TABLE rota_job ADD COLUMN unique_key TEXT;
ALTER TABLE rota_job ADD COLUMN iteration INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rota_job ADD COLUMN last_run REAL;

-- Who has which key: the enqueue that inserts the row. `until` is the end of its period, up to which it is kept
-- though its job has ended. `job` is null for the moment until the job is stored, too.
CREATE TABLE rota_unique (
    key           TEXT NOT NULL,
    task          TEXT NOT NULL,
    job           INTEGER,
    until         REAL,
    first_at      REAL NOT NULL,
    while_waiting INTEGER NOT NULL CHECK (while_waiting IN (0, 1)),
    ended         INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1)),
    PRIMARY KEY (key, task)
) STRICT, WITHOUT ROWID;

-- What has become of a job's key.
CREATE INDEX rota_unique_job ON rota_unique (job);

-- prune: what is held no longer.
CREATE INDEX rota_unique_until ON rota_unique (until) WHERE until IS NOT NULL;

-- list_subject: the jobs of a key.
CREATE INDEX rota_job_subject ON rota_job (unique_key) WHERE unique_key IS NOT NULL;
