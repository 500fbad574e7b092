-- signal.sql for a job in the timer, where most are that are told something; no row: it is not
-- there, and nothing was sent.
-- On a connection of a caller's to plan this takes a part of the time.
-- Locks nothing. Walks the timer's primary key.
WITH addressed AS MATERIALIZED (
    SELECT timer.state FROM rota.timer
    WHERE timer.id = %(job)s::int8 AND (timer.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = timer.unique_key AND held.task = timer.task AND held.job = timer.id
          AND held.entry = timer.entry), false))
    ORDER BY timer.id DESC, timer.entry DESC LIMIT 1
), sent AS (
    INSERT INTO rota.memory (slot, id, xid, job, kind, name, ref, value)
    SELECT (SELECT last_value %% 2 FROM rota.memory_turn), number.id, pg_current_xact_id(),
           %(job)s::int8, 'signal', %(name)s::text,
           %(name)s::text || coalesce('=' || %(told)s::text, '#' || number.id), %(value)s::text::json
    FROM addressed CROSS JOIN LATERAL (SELECT nextval('rota.memory_id') AS id) AS number
)
SELECT state FROM addressed
