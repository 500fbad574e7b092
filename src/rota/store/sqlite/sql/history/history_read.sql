-- What happened in a queue, or in all together (''), since a minute, in steps of so many minutes:
-- when a step begins, how many minutes its numbers took to come about, and the numbers. A minute
-- that was recorded, and has no row of the queue, is one in which nothing happened. Locks nothing.
-- Walks: rota_history by its primary key, two queues from that minute on.
SELECT minute / :step * :step * 60,
       coalesce(sum(span) FILTER (WHERE queue = ''), 0),
       coalesce(sum(appended) FILTER (WHERE queue = :queue), 0),
       coalesce(sum(claimed) FILTER (WHERE queue = :queue), 0),
       coalesce(sum(completed) FILTER (WHERE queue = :queue), 0),
       coalesce(sum(discarded) FILTER (WHERE queue = :queue), 0),
       coalesce(max(available) FILTER (WHERE queue = :queue), 0),
       max(oldest) FILTER (WHERE queue = :queue)
FROM rota_history
WHERE queue IN ('', :queue) AND minute >= :since
GROUP BY minute / :step
ORDER BY minute / :step;
