-- Cron: entries that make a job at each of their due times.

-- What is to be enqueued, when, and how far that has come: due times up to `since` have been dealt
-- with, `due` is the next one (null: there is none), `last` the newest that has made a job.
-- `parameter` is the one that gets the due time. `declaration` is what the code said last, null for an
-- entry that was added at run time. `seq` counts how often the entry has moved on.
CREATE TABLE rota_cron_entry (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT NOT NULL UNIQUE,
    expression   TEXT NOT NULL,
    timezone     TEXT NOT NULL,
    missed       TEXT NOT NULL CHECK (missed IN ('skip', 'latest', 'all')),
    jitter       REAL NOT NULL,
    task         TEXT NOT NULL,
    args         TEXT NOT NULL,
    parameter    TEXT,
    queue        TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    timeout      REAL,
    paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    declaration  TEXT,
    created_at   REAL NOT NULL,
    seq          INTEGER NOT NULL DEFAULT 0,
    since        REAL,
    due          REAL,
    last         REAL
) STRICT;

-- Which entries (a JSON array of names) the code of a worker declares, one row for each session that
-- has any.
CREATE TABLE rota_cron_worker (
    session INTEGER PRIMARY KEY,
    entries TEXT NOT NULL
) STRICT;

-- Every entry, also for people. Entries that come from code and are in the code of no worker that is
-- alive are `undeclared`, and are not run.
CREATE VIEW rota_cron AS
SELECT entry.*, entry.declaration IS NOT NULL AS declared,
       entry.declaration IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM rota_cron_worker AS worker
           JOIN rota_session AS session ON session.id = worker.session
           JOIN json_each(worker.entries) AS declares
           WHERE session.ended_at IS NULL AND declares.value = entry.name) AS undeclared
FROM rota_cron_entry AS entry;
