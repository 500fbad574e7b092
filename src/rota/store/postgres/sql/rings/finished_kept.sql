-- Whether a segment of the finished ring still holds a job within its retention. The newest row is
-- looked at first, by finished_job; the whole segment only if that row has expired.
SELECT coalesce((SELECT keep_until > now() FROM rota.finished WHERE segment = %(segment)s::int2
                 ORDER BY id DESC LIMIT 1), false)
    OR EXISTS (SELECT FROM rota.finished WHERE segment = %(segment)s::int2 AND keep_until > now())
