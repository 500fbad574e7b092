-- waiting_lanes_lock.sql without its lock: no claim sees the jobs of this transaction.
SELECT id FROM rota.lane
WHERE id IN (SELECT lane FROM rota.log WHERE id = ANY (%(jobs)s::int8[]))
ORDER BY id
