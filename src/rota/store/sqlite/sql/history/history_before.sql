-- The totals of these queues (a JSON array) when they were recorded last. Locks nothing. Walks:
-- rota_history by its primary key, one probe for each.
SELECT asked.value, last.total_appended, last.total_claimed, last.total_completed, last.total_discarded
FROM json_each(:queues) AS asked
JOIN rota_history AS last
  ON last.queue = asked.value
 AND last.minute = (SELECT max(minute) FROM rota_history WHERE queue = asked.value);
