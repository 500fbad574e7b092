-- A replacement in a transaction that stays open locks no job that runs.

-- Lock the keys of jobs that have not started, in the order given; which of them there were. A claim that
-- commits between the snapshot and the lock leaves PostgreSQL with a lock on the row of a job that
-- runs by now, which the statement does not even give: its settlement would wait until this transaction
-- ends. So where a row was seen that was not had, all locks are given back, and it begins again.
CREATE FUNCTION rota.lock_waiting(task text, keys text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    locked text[];
    lost   boolean;
BEGIN
    LOOP
        BEGIN
            SELECT array_agg(held.key) FILTER (WHERE held.key IS NOT NULL),
                   bool_or(held.key IS NULL AND EXISTS (
                       SELECT FROM rota.unique_key AS seen
                       WHERE seen.key = wanted.key AND seen.task = lock_waiting.task
                         AND seen.state IN ('scheduled', 'available', 'retryable')))
            INTO locked, lost
            FROM unnest(lock_waiting.keys) AS wanted (key)
            LEFT JOIN LATERAL (
                SELECT held.key FROM rota.unique_key AS held
                WHERE held.key = wanted.key AND held.task = lock_waiting.task
                  AND held.state IN ('scheduled', 'available', 'retryable')
                FOR UPDATE
            ) AS held ON true;
            IF NOT lost THEN
                RETURN coalesce(locked, '{}');
            END IF;
            RAISE SQLSTATE 'RT001';
        EXCEPTION WHEN SQLSTATE 'RT001' THEN
            NULL;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION rota.lock_waiting IS 'Lock keys whose jobs have not started, and no others.';
