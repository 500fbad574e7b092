-- Which minute is over, since 1970; into which segment its numbers go; the newest minute that was
-- recorded, and its segment (null: there is none); and what the sequence says, 0 where differences
-- cannot be taken from what is there.
-- Locks nothing. Walks the primary key to the newest minute of all queues.
SELECT floor(extract(epoch FROM clock_timestamp()) / 60)::int8 - 1,
       (SELECT last_value % 5 FROM rota.history_turn)::int4,
       (extract(epoch FROM newest.minute) / 60)::int8, newest.segment::int4,
       (SELECT last_value FROM rota.history_recorded)
FROM (SELECT) AS nothing
LEFT JOIN LATERAL (
    SELECT history.minute, history.segment FROM rota.history WHERE history.queue = ''
    ORDER BY history.queue DESC, history.minute DESC LIMIT 1
) AS newest ON true
