-- What happened in each minute is kept for a week, and how many jobs ever ended is counted.
-- Expands: older code records no minutes, does not count what it does not keep, and lets its marks forget how many jobs ended.

-- What happened in each minute, by queue, for seven days: a ring. The queue '' stands for all together, and its rows say
-- which minutes were recorded; a queue in which nothing happened and nothing waits has no row. The `total_` columns are
-- the running totals from which the next difference is taken. `span` is how many minutes that difference took to come about:
-- more than one after minutes in which no worker looked, 0 where nothing is known of before.
CREATE SEQUENCE rota.history_turn MINVALUE 0 START 0;
CREATE SEQUENCE rota.history_begun MINVALUE 0 START 0;
SELECT setval('rota.history_begun', extract(epoch FROM now())::int8);
-- The newest minute that was recorded, since 1970; 0: no difference can be taken from what is there.
CREATE SEQUENCE rota.history_recorded MINVALUE 0 START 0;
CREATE TABLE rota.history (
    minute          timestamptz NOT NULL,
    total_appended  bigint NOT NULL,
    total_claimed   bigint NOT NULL,
    total_completed bigint NOT NULL,
    total_discarded bigint NOT NULL,
    span            integer NOT NULL,
    appended        integer NOT NULL,
    claimed         integer NOT NULL,
    completed       integer NOT NULL,
    discarded       integer NOT NULL,
    available       integer NOT NULL,   -- at the end of the minute
    oldest          real,               -- seconds since the job that is next was enqueued
    segment         smallint NOT NULL,
    queue           text NOT NULL,
    PRIMARY KEY (queue, minute, segment)
) PARTITION BY LIST (segment);
CREATE TABLE rota.history_0 PARTITION OF rota.history FOR VALUES IN (0);
CREATE TABLE rota.history_1 PARTITION OF rota.history FOR VALUES IN (1);
CREATE TABLE rota.history_2 PARTITION OF rota.history FOR VALUES IN (2);
CREATE TABLE rota.history_3 PARTITION OF rota.history FOR VALUES IN (3);
CREATE TABLE rota.history_4 PARTITION OF rota.history FOR VALUES IN (4);

-- The totals of this moment: those of the newest mark, and what came since. What came since is what
-- transactions wrote that were running at the mark or began later. The log itself says what was
-- appended, so that a producer writes nothing more: copies of leased rows keep their xid and do not
-- count again. `recent` is how many rows were looked at, zero where the mark says it all. Plain lanes
-- stand for the lanes of keys of their queue and priority, so that a mark does not grow with the keys.
-- An array of xids would not do for the log: on an empty table a plan may filter by it.
-- 'completed' and 'discarded' with the expiry -infinity are no jobs that are there, but running totals: how many
-- ever ended so.
CREATE OR REPLACE VIEW rota.counter AS
WITH mark AS MATERIALIZED (
    SELECT newest.*, pg_snapshot_xmax(newest.snapshot) AS later,
           ARRAY(SELECT pg_snapshot_xip(newest.snapshot)) AS running
    FROM rota.tally_mark AS newest ORDER BY newest.seq DESC LIMIT 1
), change AS (
    SELECT lane.id AS lane, 'appended' AS state, 'infinity'::timestamptz AS expires, came.jobs,
           came.jobs AS recent
    FROM mark CROSS JOIN rota.lane_used AS lane
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid >= mark.later
            UNION ALL
            SELECT FROM unnest(mark.running) AS late (xid)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job WHERE job.lane = lane.id AND job.xid = late.xid
                ORDER BY job.lane, job.xid, job.id
            ) AS job
        ) AS job
    ) AS came
    WHERE came.jobs > 0
    UNION ALL
    SELECT tally.lane, tally.state, one.expires, one.jobs, one.recent
    FROM mark
    CROSS JOIN LATERAL (
        SELECT tally.* FROM rota.tally WHERE tally.xid >= mark.later
        UNION ALL
        SELECT tally.* FROM rota.tally WHERE tally.xid = ANY (mark.running)
    ) AS tally
    CROSS JOIN LATERAL (
        SELECT tally.expires, CASE WHEN pg_visible_in_snapshot(tally.appended_by, mark.snapshot)
                                   THEN 0 ELSE tally.jobs END AS jobs, 1 AS recent
        UNION ALL
        SELECT '-infinity', tally.jobs, 0
        WHERE tally.jobs > 0 AND tally.state IN ('completed', 'discarded') AND tally.expires > '-infinity'
    ) AS one
)
SELECT plain.id AS lane, part.state, part.expires, sum(part.jobs)::bigint AS jobs,
       sum(part.recent)::bigint AS recent
FROM (
    SELECT total.lane, total.state, total.expires, total.jobs, 0 AS recent
    FROM mark
    CROSS JOIN LATERAL unnest(mark.lanes, mark.states, mark.expires, mark.jobs)
        AS total (lane, state, expires, jobs)
    UNION ALL
    SELECT * FROM change
) AS part
CROSS JOIN LATERAL (
    SELECT plain.id FROM rota.lane
    JOIN rota.lane AS plain
      ON plain.queue = lane.queue AND plain.priority = lane.priority AND NOT plain.of_key
    WHERE lane.id = part.lane LIMIT 1
) AS plain
GROUP BY plain.id, part.state, part.expires;
