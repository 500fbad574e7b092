-- Jobs that ran and have a key wait again: note the entry that counts now, and where it is.
-- `rounds` is 1 where a round has ended with Again. How long a debounce may push the job back
-- counts from now. Locks and walks as in key_end.sql.
UPDATE rota.unique_key AS held
SET entry = held.entry + 1, state = back.state, first_at = clock_timestamp(),
    iteration = CASE WHEN back.round = 1 THEN coalesce(held.iteration, 0) + 1 ELSE held.iteration END,
    last_run = CASE WHEN back.round = 1 THEN now() ELSE held.last_run END
FROM unnest(%(jobs)s::int8[], %(keys)s::text[], %(states)s::text[], %(rounds)s::int4[])
    AS back (id, key, state, round)
WHERE held.key = back.key AND held.job = back.id
