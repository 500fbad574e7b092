-- Remove jobs that wait for their time, and say so in the tally.
WITH job AS (
    DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING id, lane, state
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM job GROUP BY lane, state
)
SELECT id FROM job
