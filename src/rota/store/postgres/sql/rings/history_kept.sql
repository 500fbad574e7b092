-- Whether a segment of the history has a minute of the last seven days, by its newest one. Walks
-- the primary key.
SELECT coalesce((SELECT history.minute > clock_timestamp() - interval '7 days' FROM rota.history
                 WHERE history.segment = %(segment)s::int2 AND history.queue = ''
                 ORDER BY history.queue DESC, history.minute DESC LIMIT 1), false)
