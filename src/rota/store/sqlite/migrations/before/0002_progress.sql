-- What handlers tell of their runs: the newest progress of a job, and its newest log lines. `lease`
-- says which run told it, `number` which progress or which line of that run it was. A job without
-- notes has no row here. They go with their job; what a job leaves that vanished by itself (its
-- retention was 0) is swept up.
CREATE TABLE rota_note (
    job      INTEGER NOT NULL,
    line     INTEGER NOT NULL CHECK (line IN (0, 1)),
    lease    INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    at       REAL NOT NULL,
    fraction REAL,
    level    TEXT,
    text     TEXT NOT NULL,
    PRIMARY KEY (job, line, lease, number),
    CHECK (CASE WHEN line THEN level IS NOT NULL ELSE fraction BETWEEN 0 AND 1 END)
) STRICT, WITHOUT ROWID;
