-- Unique jobs that were waiting for their time are in the log now. Their keys are locked.
UPDATE rota.unique_key AS held SET state = 'available'
FROM unnest(%(jobs)s::int8[], %(keys)s::text[]) AS back (id, key)
WHERE held.key = back.key AND held.job = back.id
