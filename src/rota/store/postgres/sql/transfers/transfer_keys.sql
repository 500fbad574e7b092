-- Give the unique keys of such jobs what they had.
-- Locks: the rows of these keys, which this transaction has made. Walks: unique_key by its primary
-- key.
UPDATE rota.unique_key AS held
SET until = to_timestamp(was.until), first_at = to_timestamp(was.first_at),
    iteration = was.iteration, last_run = to_timestamp(was.last_run)
FROM unnest(%(keys)s::text[], %(tasks)s::text[], %(untils)s::float8[], %(firsts)s::float8[],
            %(iterations)s::int4[], %(last_runs)s::float8[])
    AS was (key, task, until, first_at, iteration, last_run)
WHERE held.key = was.key AND held.task = was.task
