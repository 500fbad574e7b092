-- What jobs remember across their runs: steps, sleeps, and signals.
-- Expands: older code knows nothing of the table, and leaves the memory of jobs that it deletes, which is swept up.

-- What jobs remember across their runs (docs/steps.md), in the order of `id`. `kind`:
--   step    the result of a step
--   sleep   when a sleep ends: `until`
--   wait    a job has gone to sleep for a signal, `ref`, at most `until`; `due` is for when it was scheduled then
--   answer  how a wait has ended: with the signal `ref`, or, where that is null, because the time was up
--   signal  a message: `ref` tells it from others
-- A repeated name has the number of its turn behind it: `charge#2`. It goes with its job; what a job leaves
-- that vanished by itself (its retention was 0) is swept up.
CREATE TABLE rota_memory (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    job   INTEGER NOT NULL,
    at    REAL NOT NULL,
    until REAL,
    due   REAL,
    kind  TEXT NOT NULL CHECK (kind IN ('step', 'sleep', 'wait', 'answer', 'signal')),
    name  TEXT NOT NULL,
    ref   TEXT,
    value TEXT
) STRICT;
CREATE INDEX rota_memory_order ON rota_memory (job, id);
CREATE INDEX rota_memory_ref ON rota_memory (job, ref) WHERE ref IS NOT NULL;
