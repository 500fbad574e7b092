-- What happened in a queue, or in all together (''), since a minute, in steps of so many minutes:
-- when a step begins, how many minutes its numbers took to come about, and the numbers. A minute
-- that was recorded, and has no row of the queue, is one in which nothing happened. Locks nothing.
-- Walks the primary key for two queues from that minute on.
SELECT extract(epoch FROM bucket.at)::int8, bucket.span::int8, bucket.appended::int8, bucket.claimed::int8,
       bucket.completed::int8, bucket.discarded::int8, bucket.available::int8, bucket.oldest::float8
FROM (
    SELECT date_bin(make_interval(mins => %(step)s::int4), history.minute, 'epoch') AS at,
           coalesce(sum(span) FILTER (WHERE queue = ''), 0) AS span,
           coalesce(sum(appended) FILTER (WHERE queue = %(queue)s::text), 0) AS appended,
           coalesce(sum(claimed) FILTER (WHERE queue = %(queue)s::text), 0) AS claimed,
           coalesce(sum(completed) FILTER (WHERE queue = %(queue)s::text), 0) AS completed,
           coalesce(sum(discarded) FILTER (WHERE queue = %(queue)s::text), 0) AS discarded,
           coalesce(max(available) FILTER (WHERE queue = %(queue)s::text), 0) AS available,
           max(oldest) FILTER (WHERE queue = %(queue)s::text) AS oldest
    FROM rota.history
    WHERE history.queue = ANY (ARRAY['', %(queue)s::text]) AND history.minute >= to_timestamp(%(since)s::int8 * 60)
    GROUP BY 1
) AS bucket
ORDER BY bucket.at
