-- Free the keys of jobs that have ended; a job with a period holds its key until that is over.
-- Locks: the rows of these keys, which no producer locks while the jobs run. Walks unique_key's
-- primary key.
WITH done AS MATERIALIZED (
    SELECT * FROM unnest(%(jobs)s::int8[], %(keys)s::text[]) AS done (id, key)
), gone AS (
    DELETE FROM rota.unique_key AS held USING done
    WHERE held.key = done.key AND held.job = done.id AND coalesce(held.until <= now(), true)
)
UPDATE rota.unique_key AS held SET state = 'ended' FROM done
WHERE held.key = done.key AND held.job = done.id AND held.until > now()
