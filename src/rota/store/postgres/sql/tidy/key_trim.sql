-- Forget keys whose period is over and whose jobs have ended. A job that ends after its period
-- frees its key itself.
-- Walks unique_key_until from a minute before the last round on: before that, under an old
-- snapshot, lie the dead rows of earlier rounds. (A settlement that takes longer than that minute
-- may leave a key behind, of a period that is over.)
WITH span AS MATERIALIZED (
    SELECT to_timestamp(last_value - 60) AS since, now() AS until, here.second
    FROM rota.key_trimmed CROSS JOIN (SELECT extract(epoch FROM now())::int8 AS second) AS here
), gone AS (
    DELETE FROM rota.unique_key
    WHERE until >= (SELECT since FROM span) AND until <= (SELECT span.until FROM span) AND state = 'ended'
)
SELECT setval('rota.key_trimmed', second) FROM span
