-- Remove jobs that wait for their time, and say so in the tally.
-- Void entries stay. One that a claim has put aside counts as available, see claim.sql.
-- `only`: if they are in this state.
WITH job AS (
    DELETE FROM rota.timer
    WHERE id = ANY (%(jobs)s::int8[]) AND (%(only)s::text IS NULL OR state = %(only)s)
      AND (timer.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
          AND held.entry = timer.entry), false))
    RETURNING id, lane, state, unique_key, headers
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane,
           CASE WHEN state = 'available' THEN 'removed' ELSE state END,
           CASE WHEN state = 'available' THEN count(*) ELSE -count(*) END
    FROM job GROUP BY lane, state
)
SELECT id, unique_key, headers ->> 'rota.node' FROM job
