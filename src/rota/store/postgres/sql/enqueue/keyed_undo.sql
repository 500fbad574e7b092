-- Take back what this transaction has just enqueued, since a key of one of the jobs was taken:
-- callers may go on with their transaction. Where every statement is a transaction of its own the
-- jobs may have been seen, so the tally says what has gone, as in available_delete.sql.
WITH key AS (
    DELETE FROM rota.unique_key WHERE task = %(task)s AND key = ANY (%(keys)s::text[]) AND job = ANY (%(jobs)s::int8[])
), job AS (
    DELETE FROM rota.log WHERE id = ANY (%(jobs)s::int8[]) RETURNING id, lane, xid
), timer AS (
    DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING id, lane
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs, appended_by)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'removed', count(*), NULL
    FROM job GROUP BY lane
    UNION ALL
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'appended', count(*), xid
    FROM job GROUP BY lane, xid
    UNION ALL
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'scheduled', -count(*), NULL
    FROM timer GROUP BY lane
)
SELECT id FROM job UNION ALL SELECT id FROM timer
