-- settle_at_once.sql for jobs that are not kept: settle_whole.sql and settle_gone.sql in one
-- statement. The texts are the same as there.
WITH freed AS (
    DELETE FROM rota.lease
    WHERE id = %(lease)s::int8 AND session = %(session)s::int8 AND jobs = %(jobs)s::text::int8[]
      AND NOT EXISTS (SELECT FROM rota.cancel_request)
    RETURNING id, lane, CASE WHEN pg_try_advisory_lock(7682007, 0)
                             THEN pg_advisory_unlock(7682007, 0) IS NULL ELSE true END AS waited
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'completed', '-infinity',
           cardinality(%(jobs)s::text::int8[])
    FROM freed
)
SELECT CASE WHEN waited THEN (SELECT count(pg_notify('rota_ended', part)) FROM unnest(%(parts)s::text[]) AS part) END
FROM freed
