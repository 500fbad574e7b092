-- The jobs that this transaction has put into the log or the timer, in their order. `xid` is that
-- of the whole transaction, also in a savepoint; '0' have those that own_claim.sql has handed out.
-- Locks nothing.
-- Walks log_order in each lane, and timer_xid.
SELECT job.id
FROM rota.lane
CROSS JOIN LATERAL (
    SELECT id FROM rota.log
    WHERE log.lane = lane.id AND log.xid IN ('0', pg_current_xact_id())
) AS job
UNION
SELECT id FROM rota.timer WHERE xid = pg_current_xact_id()
ORDER BY id
