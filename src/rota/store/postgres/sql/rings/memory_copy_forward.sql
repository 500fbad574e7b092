-- Copy what counts of the table of memory that is left, where it was not copied before: what came
-- since the last round of each job. That of finished jobs goes to the segment their job lies in,
-- that of others to the current table; nothing of jobs that are gone. Gives how many rows were
-- copied, or could not be, since their jobs are being acted on.
-- Locks: the finished jobs, SKIP LOCKED, so that none of them is retried meanwhile without its
-- memory. Reads the whole table that is left; walks memory_order, finished_memory_order,
-- finished_job, log_job and the timer's primary key.
WITH left_there AS MATERIALIZED (
    SELECT memory.* FROM rota.memory WHERE slot <> (SELECT last_value % 2 FROM rota.memory_turn)
), counts AS MATERIALIZED (
    SELECT left_there.* FROM left_there
    WHERE NOT EXISTS (
        SELECT FROM rota.memory AS round
        WHERE round.job = left_there.job AND round.kind = 'round' AND round.id > left_there.id)
      AND NOT EXISTS (
        SELECT FROM rota.memory AS copy
        WHERE copy.job = left_there.job AND copy.id = left_there.id AND copy.slot <> left_there.slot)
), known AS MATERIALIZED (
    SELECT finished.id, finished.segment FROM rota.finished
    WHERE finished.id = ANY (ARRAY(SELECT DISTINCT job FROM counts))
), locked AS MATERIALIZED (
    SELECT finished.id, finished.segment FROM rota.finished
    WHERE finished.id = ANY (ARRAY(SELECT id FROM known))
    FOR KEY SHARE SKIP LOCKED
), ended AS (
    INSERT INTO rota.finished_memory (id, job, at, until, segment, kind, name, ref, value)
    SELECT counts.id, counts.job, counts.at, counts.until, locked.segment, counts.kind, counts.name, counts.ref, counts.value
    FROM counts JOIN locked ON locked.id = counts.job
    WHERE NOT EXISTS (
        SELECT FROM rota.finished_memory AS copy
        WHERE copy.job = counts.job AND copy.id = counts.id)
    RETURNING id
), living AS (
    INSERT INTO rota.memory (slot, id, xid, job, at, until, entry, kind, name, ref, value)
    SELECT (SELECT last_value % 2 FROM rota.memory_turn), id, xid, job, at, until, entry, kind, name, ref, value
    FROM counts
    WHERE NOT EXISTS (SELECT FROM known WHERE known.id = counts.job)
      AND (EXISTS (SELECT FROM rota.log WHERE log.id = counts.job)
           OR EXISTS (SELECT FROM rota.timer WHERE timer.id = counts.job))
    RETURNING id
)
SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM living)
     + (SELECT count(*) FROM known) - (SELECT count(*) FROM locked)
