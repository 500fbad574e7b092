-- The ids of the next jobs of a queue that wait for their time in one state. Locks nothing.
-- Walks: timer by its primary key, from where the last batch ended.
SELECT timer.id
FROM rota.timer
JOIN rota.lane ON lane.id = timer.lane
WHERE timer.id > %(after)s::int8 AND timer.id <= %(until)s::int8
  AND lane.queue = %(queue)s AND timer.state = %(state)s
ORDER BY timer.id LIMIT %(size)s::int8
