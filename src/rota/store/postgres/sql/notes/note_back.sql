-- Take the notes of jobs that finished and are made available again out of the segments that will
-- be truncated. By hand, hence rare.
WITH back AS (
    DELETE FROM rota.finished_note WHERE job = ANY (%(jobs)s::int8[]) RETURNING *
)
INSERT INTO rota.note (slot, job, lease, attempt, line, number, at, fraction, level, text)
SELECT (SELECT last_value %% 2 FROM rota.note_turn), job, lease, attempt, line, number, at, fraction,
       level, text
FROM back
