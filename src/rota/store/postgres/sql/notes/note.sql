-- Append what handlers have told of their runs; `ages` are the seconds since each note was told.
-- Gives the number of notes.
-- Locks: nothing that any other statement waits for.
WITH kept AS (
    INSERT INTO rota.note (slot, job, lease, attempt, line, number, at, fraction, level, text)
    SELECT (SELECT last_value %% 2 FROM rota.note_turn), told.job, told.lease, told.attempt, told.line,
           told.number, clock_timestamp() - make_interval(secs => told.age), told.fraction, told.level,
           told.text
    FROM unnest(%(jobs)s::int8[], %(leases)s::int8[], %(attempts)s::int2[], %(lines)s::bool[],
                %(numbers)s::int8[], %(ages)s::float8[], %(fractions)s::float8[], %(levels)s::text[],
                %(texts)s::text[])
        AS told (job, lease, attempt, line, number, age, fraction, level, text)
    RETURNING job
)
SELECT count(*) FROM kept
