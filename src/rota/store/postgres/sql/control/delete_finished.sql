-- Remove finished jobs, and say so in the tally.
-- `only`: if they are in this state.
WITH job AS (
    DELETE FROM rota.finished
    WHERE id = ANY (%(jobs)s::int8[]) AND (%(only)s::text IS NULL OR state = %(only)s)
    RETURNING id, queue, priority, state, keep_until
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, kind.state, kind.keep_until,
           -kind.jobs
    FROM (
        SELECT queue, priority, state, keep_until, count(*) AS jobs FROM job
        GROUP BY queue, priority, state, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT id FROM job
