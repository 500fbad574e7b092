-- Lock the keys of these jobs, in their order, so that none is replaced, claimed or staged until
-- this transaction ends. Waits for a replacement that is under way, so it comes before any other
-- lock.
SELECT held.key FROM rota.unique_key AS held
WHERE held.job = ANY (%(jobs)s::int8[]) AND held.state <> 'running'
  AND held.key = ANY (ARRAY(
    SELECT unique_key FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) AND unique_key IS NOT NULL
    UNION ALL
    SELECT unique_key FROM rota.log WHERE id = ANY (%(jobs)s::int8[]) AND unique_key IS NOT NULL))
ORDER BY held.key FOR UPDATE
