-- Send a signal to a job that has not ended; gives the job's state, no row where there is no such
-- job. `told` is what tells it from others of its name, null for nothing.
-- Locks nothing. Walks what get.sql walks.
WITH addressed AS MATERIALIZED (
    SELECT state FROM rota.job WHERE id = %(job)s::int8 LIMIT 1
), sent AS (
    INSERT INTO rota.memory (slot, id, xid, job, kind, name, ref, value)
    SELECT (SELECT last_value %% 2 FROM rota.memory_turn), number.id, pg_current_xact_id(),
           %(job)s::int8, 'signal', %(name)s::text,
           %(name)s::text || coalesce('=' || %(told)s::text, '#' || number.id), %(value)s::text::json
    FROM addressed CROSS JOIN LATERAL (SELECT nextval('rota.memory_id') AS id) AS number
    WHERE addressed.state NOT IN ('completed', 'discarded', 'cancelled')
)
SELECT state FROM addressed
