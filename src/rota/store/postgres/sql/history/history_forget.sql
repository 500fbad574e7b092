-- Remove the minutes that are still to come: they were written before the clock was set back. What
-- was counted in them counts in the next one. Locks: rows that nobody else writes, while this
-- transaction has the turn of the housekeepers. Walks the primary key of each queue from that
-- minute on; there are few, and rarely any.
DELETE FROM rota.history
WHERE minute > to_timestamp(%(label)s::int8 * 60)
  AND queue = ANY (ARRAY(SELECT name FROM rota.queue UNION ALL SELECT ''))
