-- Make waiting jobs available now, with all their attempts; says so in the tally.
WITH job AS (
    DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM job GROUP BY lane, state
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors)
SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn), 0,
       max_attempts, task, args, errors
FROM job ORDER BY run_at, id
RETURNING id
