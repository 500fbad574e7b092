-- The audit: what people did on the dashboard.
-- Expands: older code knows nothing of the table, and its dashboard writes no rows.

-- `what` says to what it was done, a JSON object; `changed` how many jobs, queues or entries that has changed.
-- An action on everything that matches is carried out by a `job`, which has come up to `position`. The newest 10,000
-- rows stay: each new one removes what is older.
CREATE TABLE rota_audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       REAL NOT NULL,
    changed  INTEGER NOT NULL DEFAULT 0,
    job      INTEGER,
    who      TEXT NOT NULL,
    action   TEXT NOT NULL,
    what     TEXT NOT NULL,
    position TEXT
) STRICT;
