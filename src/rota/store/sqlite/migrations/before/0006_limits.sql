-- Limits and fair shares: jobs with a key lie in a lane of that key.

-- What limits the jobs of a key: so many at once, so many starts in so many seconds. The numbers come
-- from the code that enqueues, and change when they change there. 0 is no limit's id.
CREATE TABLE rota_limit (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    key          TEXT NOT NULL UNIQUE,
    running      INTEGER,
    rate_count   INTEGER,
    rate_seconds REAL
) STRICT;

-- The jobs of one queue and priority with the same keys; `served` rises with each lease that had some of
-- them, and with their places in it. Jobs without such a key have no lane.
CREATE TABLE rota_lane (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    queue    TEXT NOT NULL,
    priority INTEGER NOT NULL,
    limit_id INTEGER NOT NULL DEFAULT 0,
    fair     TEXT NOT NULL DEFAULT '',
    served   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, priority, limit_id, fair)
) STRICT;

-- claim: which lane of a queue is next, the one first that was served longest ago.
CREATE INDEX rota_lane_order ON rota_lane (queue, priority, served);

-- How many jobs of a limit with a rate started when; forgotten as soon as no window reaches back to it.
CREATE TABLE rota_limit_start (
    limit_id INTEGER NOT NULL,
    at       REAL NOT NULL,
    jobs     INTEGER NOT NULL
) STRICT;
CREATE INDEX rota_limit_start_order ON rota_limit_start (limit_id, at, jobs);

ALTER TABLE rota_job ADD COLUMN lane INTEGER;

-- claim: a job in a lane is in none of the walks of the others. As in 0001, the columns that are the same
-- in every entry keep SQLite from reading the rows.
DROP INDEX rota_job_available;
CREATE INDEX rota_job_available ON rota_job (state, lane, queue, priority)
    WHERE state = 'available' AND lane IS NULL;
CREATE INDEX rota_job_keyed ON rota_job (state, lane)
    WHERE state = 'available' AND lane IS NOT NULL;

-- claim: how many jobs of a lane run.
CREATE INDEX rota_job_held ON rota_job (lane, session)
    WHERE session IS NOT NULL AND lane IS NOT NULL;
