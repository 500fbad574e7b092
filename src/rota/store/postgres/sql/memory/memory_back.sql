-- Take the memory of jobs that finished and are made available again out of the segments that will
-- be truncated.
-- The jobs are locked, so memory_copy_forward.sql is over or leaves them alone. By hand, hence
-- rare.
WITH back AS (
    DELETE FROM rota.finished_memory WHERE job = ANY (%(jobs)s::int8[]) RETURNING *
)
INSERT INTO rota.memory (slot, id, job, at, until, kind, name, ref, value)
SELECT (SELECT last_value %% 2 FROM rota.memory_turn), id, job, at, until, kind, name, ref, value
FROM back
