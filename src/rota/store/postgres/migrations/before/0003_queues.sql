-- What somebody has set for single queues, and discarded jobs that do not stay for ever.

-- One row for a queue of which something was ever set; null where nothing is set. Written by people
-- (`rota queues set`), so its few dead rows do not matter. Producers read one row of it when they look
-- up their lane, workers all of it with each sign of life. Durations are seconds; `discarded` may be
-- infinity.
CREATE TABLE rota.queue_setting (
    queue        text PRIMARY KEY,
    completed    float8 CHECK (completed >= 0 AND completed < 'infinity'),
    cancelled    float8 CHECK (cancelled >= 0 AND cancelled < 'infinity'),
    discarded    float8 CHECK (discarded >= 0 AND discarded <> 'nan'),
    max_attempts smallint CHECK (max_attempts >= 1),
    timeout      real CHECK (timeout > 0 AND timeout < 'infinity'),
    concurrency  integer CHECK (concurrency >= 1)
);

-- prune_discarded.sql: those whose retention is over. A job that stays for ever is not in it.
CREATE INDEX finished_discarded_kept ON rota.finished_discarded (keep_until)
    WHERE keep_until < 'infinity';
