-- Make waiting jobs available now, with all their attempts; says so in the tally.
-- Jobs that wait for others stay where they are. Void entries stay. One that a claim has put aside
-- counts as available, see claim.sql.
-- `only`: if they are in this state.
WITH job AS (
    DELETE FROM rota.timer
    WHERE id = ANY (%(jobs)s::int8[]) AND (%(only)s::text IS NULL OR state = %(only)s)
      AND (timer.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
          AND held.entry = timer.entry), false))
      AND (headers ->> 'rota.node' IS NULL OR coalesce((
        SELECT EXISTS (SELECT FROM rota.flow_fact AS fact
                       WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'released')
        FROM rota.flow_node AS node WHERE node.id = (timer.headers ->> 'rota.node')::int8), true))
    RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane,
           CASE WHEN state = 'available' THEN 'removed' ELSE state END,
           CASE WHEN state = 'available' THEN count(*) ELSE -count(*) END
    FROM job GROUP BY lane, state
)
INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts, task,
                      args, errors, unique_key, iteration, last_run, headers)
SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn), 0,
       max_attempts, task, args, errors, unique_key, iteration, last_run, headers
FROM job ORDER BY run_at, id
RETURNING id, unique_key
