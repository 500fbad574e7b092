-- End the nodes whose jobs have all ended; gives for each of these nodes whether it has ended, and
-- where the jobs that are left of it are to be cancelled, the flow's round.
-- The sums are those of this statement's snapshot. Two settlers that end the last two jobs of a
-- node at once both look after their commits, so the later one sees both; both may insert, and the
-- key lets one of them. A user who retries a job of the node appends -1 and changes `touched`: then
-- what was summed up before that does not count, see touch.sql.
-- Locks: the rows of nodes that end, FOR SHARE, against retries by hand; it waits for `patience` at
-- the most. Walks flow_arrival_node.
WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', coalesce(%(patience)s::text, current_setting('lock_timeout')), true)
), node AS MATERIALIZED (
    SELECT node.id, node.flow, node.expects, node.round, node.touched, node.fail_fast,
           came.rows, came.failed, came.cancelled, came.completed + came.failed + came.cancelled AS arrived,
           ended.outcome, stop.reason
    FROM patience CROSS JOIN (SELECT DISTINCT unnest(%(nodes)s::int8[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT * FROM rota.flow_node WHERE flow_node.id = asked.id) AS node
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(completed), 0) AS completed, coalesce(sum(failed), 0) AS failed,
               coalesce(sum(cancelled), 0) AS cancelled, count(*) AS rows
        FROM rota.flow_arrival WHERE flow_arrival.node = node.id
    ) AS came
    LEFT JOIN rota.flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    LEFT JOIN rota.flow_stop AS stop ON stop.flow = node.flow AND stop.since <= clock_timestamp()
), complete AS MATERIALIZED (
    SELECT * FROM node
    WHERE outcome IS NULL AND arrived >= expects
      -- A node without jobs ends when it would begin.
      AND (expects > 0 OR reason IS NOT NULL OR EXISTS (
        SELECT FROM rota.flow_fact AS fact
        WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'released'))
), locked AS MATERIALIZED (
    SELECT complete.id, complete.round, complete.failed, complete.cancelled, complete.expects, complete.reason
    FROM complete JOIN rota.flow_node AS same ON same.id = complete.id AND same.touched = complete.touched
    FOR SHARE OF same
), ended AS (
    INSERT INTO rota.flow_fact (node, round, fact, outcome, reason)
    SELECT id, round, 'ended', kind.outcome, CASE WHEN kind.outcome = 'cancelled' THEN locked.reason END
    FROM locked
    CROSS JOIN LATERAL (
        SELECT CASE WHEN failed > 0 THEN 'failed'
                    WHEN cancelled > 0 OR (expects = 0 AND reason IS NOT NULL) THEN 'cancelled'
                    ELSE 'completed' END AS outcome
    ) AS kind
    ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING node
)
SELECT id, flow, outcome IS NOT NULL OR (id IN (SELECT node FROM ended)) IS TRUE,
       CASE WHEN arrived < expects AND (outcome = 'skipped' OR (outcome IS NULL AND fail_fast AND failed > 0))
            THEN (SELECT round FROM rota.flow WHERE flow.id = node.flow) END,
       rows
FROM node
