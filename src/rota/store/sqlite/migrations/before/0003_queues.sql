-- What somebody has set for single queues: one row for a queue of which something was ever set; null
-- where nothing is set. Durations are seconds; `discarded` may be infinity (9e999).
CREATE TABLE rota_queue_setting (
    queue        TEXT PRIMARY KEY,
    completed    REAL CHECK (completed >= 0 AND completed < 9e999),
    cancelled    REAL CHECK (cancelled >= 0 AND cancelled < 9e999),
    discarded    REAL CHECK (discarded >= 0),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    timeout      REAL CHECK (timeout > 0 AND timeout < 9e999),
    concurrency  INTEGER CHECK (concurrency >= 1)
) STRICT, WITHOUT ROWID;
