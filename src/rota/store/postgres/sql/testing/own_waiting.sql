-- Whether this transaction has jobs that may be available or due, or jobs of flows that have ended:
-- a claim costs more.
-- Locks nothing. Walks log_order in each lane, timer_xid, and flow_arrival_xid.
SELECT EXISTS (
    SELECT FROM rota.lane
    CROSS JOIN LATERAL (
        SELECT FROM rota.log WHERE log.lane = lane.id AND log.xid = pg_current_xact_id() LIMIT 1
    ) AS job
) OR EXISTS (
    SELECT FROM rota.timer
    WHERE xid = pg_current_xact_id() AND id <> ALL (%(but)s::int8[])
      AND (NOT %(due)s::bool OR run_at <= clock_timestamp())
      AND NOT (timer.headers ->> 'rota.node' IS NOT NULL AND timer.run_at > now() + interval '50 years')
) OR EXISTS (SELECT FROM rota.flow_arrival WHERE xid = pg_current_xact_id())
